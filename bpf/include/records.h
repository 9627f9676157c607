/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_RECORDS_H
#define TRIBUTARY_BPF_RECORDS_H

/*
 * What BPF programs and the collector share: records, counters, configuration, limits. Fixed-width fields, explicit padding;
 * sizes are asserted on both sides. Times are CLOCK_MONOTONIC ns. BPF sources define the __uN types first.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/sample_types.h"

#define TRIB_USER_FRAMES_MAX 512
#define TRIB_KERNEL_FRAMES_MAX 128
#define TRIB_COMM_BYTES 16

/*
 * Where programs run: X(NAME, name). On one CPU, programs of one context never interrupt each other, but they may interrupt
 * programs of another context. So each context has its own state and counters, and no program needs an atomic.
 *   TICK   the sampling timer's interrupt
 *   OTHER  a thread's own doings: tracepoints and uprobes
 */
#define TRIB_CONTEXTS(X) \
	X(TICK, "tick") \
	X(OTHER, "other")

#define TRIB_CONTEXT_NUMBER(NAME, name) TRIB_CONTEXT_##NAME,
enum trib_context { TRIB_CONTEXTS(TRIB_CONTEXT_NUMBER) TRIB_CONTEXT_COUNT };
#undef TRIB_CONTEXT_NUMBER

/*
 * Counters: of each context and sample type one per-CPU array slot each, TRIB_COUNTER_SLOT. What belongs to no sample is counted
 * as the type that the program takes. Order is ABI with the collector: both are built together; and with the next one, which
 * reads what a killed one left: a change goes with TRIB_SESSION_VERSION (session.h).
 */
enum trib_counter {
	TRIB_CAPTURED = 0,	/* program entries on a busy CPU: what the law starts from */
	TRIB_IDLE,		/* program entries in the idle task: not samples */
	TRIB_LOST_RING_FULL,	/* captured, and the ring buffer had no room */
	TRIB_LOST_STACK_ERROR,	/* captured, and the per-CPU scratch record was missing */
	TRIB_KERNEL_STACK_FAILED,	/* sample kept without its kernel stack */
	TRIB_COPIES,		/* samples whose stack was copied for user space to go on with */
	TRIB_COPY_RING_FULL,	/* samples kept, though there was no room for a copy of the stack */
	TRIB_RUN_NS,		/* time spent in the program */
	TRIB_COUNTER_COUNT,
};

#define TRIB_COUNTER_SLOT(context, type, counter) (((context) * TRIB_SAMPLE_TYPES_MAX + (type)) * TRIB_COUNTER_COUNT + (counter))
#define TRIB_COUNTER_SLOTS(contexts) ((contexts) * TRIB_SAMPLE_TYPES_MAX * TRIB_COUNTER_COUNT)

enum trib_flags {
	TRIB_FLAG_KERNEL_THREAD = 1,	/* no user memory: PF_KTHREAD */
	TRIB_FLAG_KERNEL_STACK_FAILED = 4,
	TRIB_FLAG_IN_KERNEL = 16,	/* interrupted in kernel mode */
};

/* How the walk of the user stack ended. What it stopped at is the last frame. */
enum trib_stop {
	TRIB_STOP_NONE = 0,	/* there is no user stack: a kernel thread, or memory given back already */
	TRIB_STOP_END,		/* a rule says that this is the outermost frame */
	TRIB_STOP_FRAME_POINTER_END, /* the return address is 0; or the frame pointer is, in code without rows */
	TRIB_STOP_STACK_START,	/* code without rows, where the stack begins: TRIB_START_STACK_BYTES */
	TRIB_STOP_DEPTH,	/* TRIB_USER_FRAMES_MAX */
	TRIB_STOP_NO_PROCESS,	/* the process's mappings are not in trib_processes, or are another program's */
	TRIB_STOP_NO_MAPPING,
	TRIB_STOP_NO_PAGE,	/* rows not loaded */
	TRIB_STOP_BAD_RULE,
	TRIB_STOP_UNREADABLE,	/* user memory paged out or invalid */
	TRIB_STOP_NO_PROGRESS,	/* the caller's frame would not lie above its callee's */
	TRIB_STOP_COUNT,
};

/*
 * On a frame's address: its code was interrupted there (by a signal, or by a fault that led into the kernel), it is no
 * return address. Addresses end below 2^56.
 */
#define TRIB_FRAME_INTERRUPTED (1ull << 63)

/*
 * One sample, as long as its frames need: header, then kernel_frames addresses leaf first, then user_frames addresses leaf
 * first. The first address of the interrupted mode is an instruction pointer, every other one a return address unless
 * TRIB_FRAME_INTERRUPTED says otherwise.
 *
 * Behind them is the tail: a __u64 for each bit that is set in `tail`, in the order of bits. A bit says what its word is;
 * readers skip words of bits that they do not know.
 */
struct trib_sample {
	__u64 time_ns;
	__u64 value;		/* in the unit of its type; of a CPU sample the sampling period in force, ns */
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 cgroup_v2_id;	/* of the task's cgroup in the unified hierarchy */
	__u64 cgroup_v1_id;	/* of its cgroup in the v1 hierarchy named by configuration; 0 when there is none */
	__u64 exec_id;		/* task_struct.self_exec_id */
	__u32 pid;		/* thread group id, initial namespace */
	__u32 tid;
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u32 flags;
	__u8 stop;		/* enum trib_stop */
	__u8 type;		/* enum trib_sample_type */
	__u16 tail;		/* which words follow the frames */
	__u32 table;		/* trib_process.table that the walk used; 0 = none */
	__u32 stack_bytes;	/* of the copy behind it; 0 in trib_samples */
	char comm[TRIB_COMM_BYTES];	/* of the thread */
	/* __u64 frames[], tail[] follow */
};

#define TRIB_SAMPLE_HEADER_BYTES 96
#define TRIB_FRAMES_MAX (TRIB_USER_FRAMES_MAX + TRIB_KERNEL_FRAMES_MAX)
#define TRIB_TAIL_WORDS_MAX 16	/* bits of `tail` */
#define TRIB_SAMPLE_WORDS_MAX (TRIB_FRAMES_MAX + TRIB_TAIL_WORDS_MAX)	/* behind the header */
#define TRIB_SAMPLE_BYTES_MAX (TRIB_SAMPLE_HEADER_BYTES + 8 * TRIB_SAMPLE_WORDS_MAX)

/*
 * A sample whose walk stopped at something that user space may know or load (TRIB_STOP_NO_PROCESS, _NO_MAPPING, _NO_PAGE):
 * what it takes to go on. Registers are those of the last frame; `stack` begins at sp. In the ring trib_copies, each one
 * record of fixed size: one of three tiers, by how much could be read.
 */
#define TRIB_COPY_BYTES_SMALL 4096
#define TRIB_COPY_BYTES_MEDIUM 16384
#define TRIB_COPY_BYTES_LARGE 65536

struct trib_resume {
	__u64 pc, sp, fp, second;	/* pc without TRIB_FRAME_INTERRUPTED; second: rbx or x30 */
	__u64 start_stack;	/* the stack pointer that the process began with (mm_struct.start_stack) */
	__u64 thread_pointer;	/* of thread-local storage */
};

struct trib_copy {
	struct trib_sample sample;
	__u64 words[TRIB_SAMPLE_WORDS_MAX];	/* frames, then the tail: as many as the sample has */
	struct trib_resume resume;
	__u8 stack[];		/* sample.stack_bytes of it are set */
};

#define TRIB_COPY_HEADER_BYTES (TRIB_SAMPLE_BYTES_MAX + 48)

#ifdef __cplusplus
static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES);
static_assert(sizeof(struct trib_copy) == TRIB_COPY_HEADER_BYTES);
#else
_Static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES, "trib_sample");
_Static_assert(sizeof(struct trib_copy) == TRIB_COPY_HEADER_BYTES, "trib_copy");
#endif

#endif
