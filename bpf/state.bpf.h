/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_STATE_BPF_H
#define TRIBUTARY_BPF_STATE_BPF_H

/* State that the parts of a program share: configuration, counters, and the per-CPU state. */

#include "bpf/include/compat.h"
#include "bpf/include/config.h"
#include "bpf/include/kernel_types.h"
#include "bpf/include/records.h"
#include "bpf/include/unwind.h"

const volatile struct trib_config config = {};

/*
 * Counters of every outcome of a sample (TRIB_COUNTER_SLOT).
 * Writer: every program, in the slots of its context and CPU. Reader: the collector, bpftool.
 * Bytes: 512 per possible CPU and per context whose programs are loaded. Never full: an array.
 */
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, __u64);
	__uint(max_entries, TRIB_COUNTER_SLOTS(TRIB_CONTEXT_COUNT));
} trib_counters SEC(".maps");

/* The frame that the walk has reached. */
struct trib_walk {
	__u64 pc, sp, fp, second;
	__u64 is_return;	/* 1: pc is a return address; the call lies before pc */
	__u64 interrupted;	/* TRIB_FRAME_INTERRUPTED if a signal interrupted the current frame, else 0 */
	__u64 fault;		/* TRIB_FRAME_INTERRUPTED if a fault or a device interrupted the first frame, else 0 */
	__u64 start_stack;	/* mm_struct.start_stack */
	__u64 thread_pointer;
	__u32 first_mapping, mapping_count;
	__u32 mapping;		/* index of the mapping found last: callers are often in the same one */
	__u32 withdrawals;	/* the low half of trib_control's withdrawals */
	__u32 runtimes;	/* of the process: TRIB_PROCESS_RUNTIMES */
	__u32 padding;
};

/*
 * A recently found rule. The key `where` is withdrawals << 32 | TRIB_REMEMBERED | number of the page entry <<
 * TRIB_PAGE_SHIFT | offset. Finding the rule again takes one cache line instead of five. All five lines are cold after
 * a period of other work.
 */
struct trib_remembered {
	__u64 where, rule;
};
#define TRIB_REMEMBERED (1u << 31)
_Static_assert((__u64)TRIB_PAGES_MAX * TRIB_PAGE_BYTES <= TRIB_REMEMBERED, "places fit");
#define TRIB_REMEMBERED_BITS 10
#define TRIB_REMEMBERED_MAX (1 << TRIB_REMEMBERED_BITS)

/*
 * Where the threads of a runtime's processes keep their thread state. The place is nearly always the same in all
 * processes with the same interpreter. It is checked whenever it is used.
 */
struct trib_key_place {
	__s16 keys;	/* from the thread pointer to the first pthread keys; 0: unknown (only glibc needs it) */
	__u8 slot;	/* number of the block of keys * TRIB_KEY_WORDS + number of the word */
	__u8 is_known;	/* 1: `slot` is set */
};

#define TRIB_KEY_WORDS 64	/* words of one block of pthread keys */

/* The walk of a chain (python.bpf.h). */
struct trib_chain_walk {
	__u64 state;	/* address of the thread state */
	__u64 frame;	/* address of the frame that is read next */
	__u64 taken;	/* the thread state of another runtime: it cannot be this runtime's too */
	__u32 runtime;	/* number in trib_runtimes */
	__u32 kind;	/* of this runtime */
	__u32 next, end;	/* in trib_state.frames: the next word to write, and the end of the room */
	__u32 frames;	/* frames of the chain so far */
	__u32 context;	/* enum trib_context */
};

/* A power of two, because the index of each written word is masked. */
#define TRIB_STATE_FRAMES TRIB_SAMPLE_WORDS_MAX
_Static_assert((TRIB_STATE_FRAMES & (TRIB_STATE_FRAMES - 1)) == 0 && TRIB_STATE_FRAMES > TRIB_COPY_WORDS_MAX,
	       "room for both stacks, chains and the tail");

#define TRIB_BELOW_CFA_WORDS 8	/* a power of two: more than the return address and the registers that callees save */

/*
 * The state in which a program builds a record. It is too big for the 512-byte BPF stack. A global function (trib_step,
 * trib_emit_copy) receives only the number of the context and finds its caller's data here. There is one element per
 * context.
 * Writer and reader: the programs of that context. Bytes: about 27 KiB per possible CPU and context (the kernel allows
 * at most 32 KiB). Before loading, the collector sets max_entries to the number of contexts whose programs it loads.
 * Never full: an array.
 */
struct trib_state {
	struct trib_walk walk;
	__u64 below_cfa[TRIB_BELOW_CFA_WORDS];	/* the words directly below the current frame's CFA */
	struct trib_remembered remembered[TRIB_REMEMBERED_MAX];
	struct trib_chain_walk chain;
	struct trib_key_place key_places[TRIB_RUNTIMES_MAX];
	__u64 object[TRIB_KEY_WORDS];	/* what the walk of a chain has read last */
	struct trib_perf_event_context registers;	/* of the interrupted user code, or saved at kernel entry */
	struct trib_sample sample;
	__u64 frames[TRIB_STATE_FRAMES];	/* directly after the sample; chains and tail follow the last frame */
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_state);
	__uint(max_entries, TRIB_CONTEXT_COUNT);
} trib_states SEC(".maps");

/*
 * Settings that may change while the program runs.
 * Writer: the collector. Reader: every program. Bytes: one page. Never full: one element.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct trib_control);
	__uint(max_entries, 1);
} trib_control SEC(".maps");

/* Programs wake the reader when this share of a ring is filled: a storm of new processes does not wait for a timer. */
#define WAKEUP_SHARE 4	/* 1/4 */

/* Returns zeros for a task without memory. */
static __always_inline struct trib_executable_key executable_of(struct task_struct *task)
{
	struct inode *inode = BPF_CORE_READ(task, mm, exe_file, f_inode);
	struct trib_executable_key key = {};

	if (inode) {
		key.inode = BPF_CORE_READ(inode, i_ino);
		key.device = BPF_CORE_READ(inode, i_sb, s_dev);
	}
	return key;
}

static __always_inline int read_user(__u64 *value, __u64 address)
{
	return bpf_probe_read_user(value, sizeof(*value), (void *)address);
}

static __always_inline struct trib_state *this_state(__u32 context)
{
	return bpf_map_lookup_elem(&trib_states, &context);
}

static __always_inline struct trib_control *this_control(void)
{
	__u32 key = 0;

	return bpf_map_lookup_elem(&trib_control, &key);
}

/* A program's context, and the type of its samples. */
struct trib_program {
	__u32 context, type;
};

/* Adds to a per-CPU slot. The slot has one writer that does not nest, so no atomic is needed. */
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

#define USER_ADDRESS_MIN 65536	/* vm.mmap_min_addr */

/*
 * Returns 1 if user space may know or load the data that the walk lacked. A pc outside the bounds below can be in no
 * mapping.
 */
static __always_inline int wants_copy(const struct trib_state *state)
{
	switch (state->sample.stop) {
	case TRIB_STOP_NO_PROCESS:
	case TRIB_STOP_NO_PAGE:
		return 1;
	case TRIB_STOP_NO_MAPPING:
		return state->walk.pc >= USER_ADDRESS_MIN && state->walk.pc <= config.address_mask;
	default:
		return 0;
	}
}

#endif
