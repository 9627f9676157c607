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
 * Every way a sample can go (TRIB_COUNTER_SLOT).
 * Writer: every program, the slots of its context and CPU. Reader: the collector, bpftool.
 * Bytes: 512 per context that is in use (trib_states) and possible CPU. Never full: an array.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_COUNTER_SLOTS(TRIB_CONTEXT_COUNT));
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
_Static_assert(TRIB_STATE_FRAMES >= TRIB_SAMPLE_WORDS_MAX, "room for both stacks and the tail");

#define TRIB_BELOW_CFA_WORDS 8	/* a power of two: more than the return address and the registers that callees save */

/*
 * Where a record is put together, too big for the 512-byte BPF stack, and what global functions find of their caller's: an
 * element for each context.
 * Writer and reader: the programs of that context. Bytes: about 25 KiB per possible CPU (32 is the most there can be) and
 * context; the collector sets max_entries before loading, to the contexts whose programs it loads. Never full: an array.
 */
struct trib_state {
	struct trib_walk walk;
	__u64 below_cfa[TRIB_BELOW_CFA_WORDS];	/* what the frame that is walked has right below its CFA */
	struct trib_remembered remembered[TRIB_REMEMBERED_MAX];
	struct trib_perf_event_context registers;	/* of the interrupted user code, or on entry to the kernel */
	struct trib_sample sample;
	__u64 frames[TRIB_STATE_FRAMES];	/* right behind it; the tail behind the last frame */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_state);
	__uint(max_entries, TRIB_CONTEXT_COUNT);
} trib_states SEC(".maps");

/*
 * What may change while the program runs.
 * Writer: the collector. Reader: every program. Bytes: a page. Never full: one element.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trib_control);
	__uint(max_entries, 1);
} trib_control SEC(".maps");

static __always_inline struct trib_state *this_state(__u32 context)
{
	return bpf_map_lookup_elem(&trib_states, &context);
}

static __always_inline struct trib_control *this_control(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&trib_control, &key);
}

/* What a program is: where it runs, and which type of samples it takes. */
struct trib_program {
	__u32 context, type;
};

/* A per-CPU slot with one writer that does not nest: no atomic needed. */
static __always_inline void count_by(struct trib_program program, __u32 counter, __u64 amount)
{
	__u32 slot = TRIB_COUNTER_SLOT(program.context, program.type, counter);
	__u64 *value = bpf_map_lookup_elem(&trib_counters, &slot);

	if (value)
		*value += amount;
}

static __always_inline void count(struct trib_program program, __u32 counter)
{
	count_by(program, counter, 1);
}

#endif
