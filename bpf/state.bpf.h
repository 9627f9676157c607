/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_STATE_BPF_H
#define TRIBUTARY_BPF_STATE_BPF_H

/* What the program's parts share: configuration, counters, and one CPU's state between them. */

#include "bpf/include/compat.h"
#include "bpf/include/config.h"
#include "bpf/include/kernel_types.h"
#include "bpf/include/records.h"
#include "bpf/include/unwind.h"

const volatile struct trib_config config = {};

/*
 * Every way a sample can go (enum trib_counter).
 * Writer: trib_sample_cpu, its own CPU's slot. Reader: the collector, bpftool.
 * Bytes: 8 × TRIB_COUNTER_COUNT per possible CPU. Never full: an array.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_COUNTER_COUNT);
} trib_counters SEC(".maps");

/* A frame on its way to its caller. */
struct trib_walk {
	__u64 pc, sp, fp, second;
	__u64 is_return;	/* 1: pc is a return address, the call lies before it */
	__u64 interrupted;	/* TRIB_FRAME_INTERRUPTED or 0 */
	__u64 fault;		/* the same, of the first frame: its registers are all known nevertheless */
	__u64 start_stack;	/* mm_struct.start_stack */
	__u64 thread_pointer;
	__u32 first_mapping, mapping_count;
	__u32 mapping;		/* the last hit: callers are often in the same one */
	__u32 withdrawals;	/* trib_control's, the low half */
};

/*
 * A rule that was found lately, by where: withdrawals << 32 | TRIB_REMEMBERED | page entry << TRIB_PAGE_SHIFT | offset.
 * Finding it again takes one cache line instead of five, and after a period of other work all of them are cold.
 */
struct trib_remembered {
	__u64 where, rule;
};
#define TRIB_REMEMBERED (1u << 31)
_Static_assert((__u64)TRIB_PAGES_MAX * TRIB_PAGE_BYTES <= TRIB_REMEMBERED, "places fit");
#define TRIB_REMEMBERED_BITS 10
#define TRIB_REMEMBERED_MAX (1 << TRIB_REMEMBERED_BITS)

/* Addresses are written at a masked index: a power of two. */
#define TRIB_STATE_FRAMES 1024
_Static_assert(TRIB_STATE_FRAMES >= TRIB_FRAMES_MAX, "room for both stacks");

#define TRIB_BELOW_CFA_WORDS 8	/* a power of two: more than the return address and the registers that callees save */

/*
 * Where a record is put together, too big for the 512-byte BPF stack, and what global functions find of their caller's.
 * Writer and reader: trib_sample_cpu. Bytes: about 25 KiB per possible CPU (32 is the most there can be). Never full: one
 * element.
 */
struct trib_state {
	struct trib_walk walk;
	__u64 below_cfa[TRIB_BELOW_CFA_WORDS];	/* what the frame that is walked has right below its CFA */
	struct trib_remembered remembered[TRIB_REMEMBERED_MAX];
	struct trib_perf_event_context registers;	/* of the interrupted user code, or on entry to the kernel */
	struct trib_sample sample;
	__u64 frames[TRIB_STATE_FRAMES];	/* right behind it */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_state);
	__uint(max_entries, 1);
} trib_states SEC(".maps");

/*
 * What may change while the program runs.
 * Writer: the collector. Reader: trib_sample_cpu. Bytes: a page. Never full: one element.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trib_control);
	__uint(max_entries, 1);
} trib_control SEC(".maps");

static __always_inline struct trib_state *this_state(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&trib_states, &key);
}

/* A per-CPU slot with one writer that does not nest: no atomic needed. */
static __always_inline void count_by(__u32 which, __u64 amount)
{
	__u64 *slot = bpf_map_lookup_elem(&trib_counters, &which);

	if (slot)
		*slot += amount;
}

static __always_inline void count(__u32 which)
{
	count_by(which, 1);
}

#endif
