/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_RECORDS_H
#define TRIBUTARY_BPF_RECORDS_H

/*
 * Definitions that BPF programs and the collector share: records, counters, configuration, limits. Fields have a fixed
 * width and padding is explicit. Both sides assert the sizes. Times are CLOCK_MONOTONIC ns. BPF sources define the __uN
 * types first.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/sample_types.h"

#define TRIB_USER_FRAMES_MAX 512
#define TRIB_KERNEL_FRAMES_MAX 128
#define TRIB_COMM_BYTES 16

/*
 * The contexts in which programs run: X(NAME, name). On one CPU, programs of one context never interrupt each other,
 * but they may interrupt programs of another context. So each context has its own state and counters, and no program
 * needs an atomic.
 *   TICK   the sampling timer's interrupt
 *   OTHER  a thread's own actions: tracepoints and uprobes
 */
#define TRIB_CONTEXTS(X) \
	X(TICK, "tick") \
	X(OTHER, "other")

#define TRIB_CONTEXT_NUMBER(NAME, name) TRIB_CONTEXT_##NAME,
enum trib_context { TRIB_CONTEXTS(TRIB_CONTEXT_NUMBER) TRIB_CONTEXT_COUNT };
#undef TRIB_CONTEXT_NUMBER

/*
 * Counters: each context and sample type has one per-CPU array slot per counter, TRIB_COUNTER_SLOT. A count that
 * belongs to no sample is added to the sample type of the program. The collector relies on the order of the counters,
 * and is built together with the programs. The next collector, which may be of another release, relies on the order too
 * when it reads the counters that a killed collector left. So a change of the order requires a new TRIB_SESSION_VERSION
 * (session.h).
 */
enum trib_counter {
	TRIB_CAPTURED = 0,	/* program entries on a busy CPU: each is a sample, delivered or counted as lost */
	TRIB_IDLE,		/* program entries in the idle task: not samples */
	TRIB_LOST_RING_FULL,	/* captured, but the ring buffer was full */
	TRIB_LOST_STACK_ERROR,	/* captured, but the per-CPU scratch record was missing */
	TRIB_KERNEL_STACK_FAILED,	/* sample kept without its kernel stack */
	TRIB_COPIES,		/* samples with a stack copy, from which user space continues the walk */
	TRIB_COPY_RING_FULL,	/* samples kept without a stack copy: the ring of copies was full */
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

/* How the walk of the user stack ended. The frame at which the walk stopped is the last frame. */
enum trib_stop {
	TRIB_STOP_NONE = 0,	/* no user stack: a kernel thread, or memory that was already released */
	TRIB_STOP_END,		/* a rule says that this is the outermost frame */
	TRIB_STOP_FRAME_POINTER_END, /* the return address is 0; or the frame pointer is 0 in code without rows */
	TRIB_STOP_STACK_START,	/* code without rows at the beginning of the stack: TRIB_START_STACK_BYTES */
	TRIB_STOP_DEPTH,	/* TRIB_USER_FRAMES_MAX */
	TRIB_STOP_NO_PROCESS,	/* the mappings are not in trib_processes, or belong to another program */
	TRIB_STOP_NO_MAPPING,
	TRIB_STOP_NO_PAGE,	/* rows not loaded */
	TRIB_STOP_BAD_RULE,
	TRIB_STOP_UNREADABLE,	/* user memory paged out or invalid */
	TRIB_STOP_NO_PROGRESS,	/* the caller's frame would not lie above its callee's frame */
	TRIB_STOP_COUNT,
};

/*
 * A flag on a frame's address: the code was interrupted at this address (by a signal, or by a fault that led into the
 * kernel), so the address is not a return address. Addresses are below 2^56.
 */
#define TRIB_FRAME_INTERRUPTED (1ull << 63)

/*
 * One sample. Its length depends on the number of frames: header, then kernel_frames addresses leaf first, then
 * user_frames addresses leaf first. The first address of the interrupted mode is an instruction pointer. Every other
 * address is a return address unless TRIB_FRAME_INTERRUPTED is set.
 *
 * The tail follows the frames: one __u64 for each bit that is set in `tail`, in the order of bits. The bit defines the
 * meaning of its word. Readers skip the words of unknown bits.
 */
struct trib_sample {
	__u64 time_ns;
	__u64 value;		/* in the unit of the sample type; for a CPU sample the current sampling period, ns */
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 cgroup_v2_id;	/* of the task's cgroup in the unified hierarchy */
	__u64 cgroup_v1_id;	/* of the task's cgroup in the configured v1 hierarchy; 0: none */
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
	__u32 table;		/* trib_process.table that the walk used; 0: none */
	__u32 stack_bytes;	/* of the stack copy that follows; 0 in trib_samples */
	char comm[TRIB_COMM_BYTES];	/* of the thread */
	/* __u64 frames[], tail[] follow */
};

#define TRIB_SAMPLE_HEADER_BYTES 96
#define TRIB_FRAMES_MAX (TRIB_USER_FRAMES_MAX + TRIB_KERNEL_FRAMES_MAX)
#define TRIB_TAIL_WORDS_MAX 16	/* bits of `tail` */
#define TRIB_SAMPLE_WORDS_MAX (TRIB_FRAMES_MAX + TRIB_TAIL_WORDS_MAX)	/* after the header */
#define TRIB_SAMPLE_BYTES_MAX (TRIB_SAMPLE_HEADER_BYTES + 8 * TRIB_SAMPLE_WORDS_MAX)

/*
 * A sample with the data that user space needs to continue the walk. In such a sample the walk stopped at a process,
 * mapping or page that user space may know or load (TRIB_STOP_NO_PROCESS, _NO_MAPPING, _NO_PAGE). The registers are
 * those of the last frame; `stack` begins at sp. In the ring trib_copies each copy is one record of fixed size. There
 * are three sizes. The size depends on the size of the stack, or on the readable memory above sp (copy_bytes).
 */
#define TRIB_COPY_BYTES_SMALL 4096
#define TRIB_COPY_BYTES_MEDIUM 16384
#define TRIB_COPY_BYTES_LARGE 65536

struct trib_resume {
	__u64 pc, sp, fp, second;	/* pc without TRIB_FRAME_INTERRUPTED; second: rbx or x30 */
	__u64 start_stack;	/* the process's initial stack pointer (mm_struct.start_stack) */
	__u64 thread_pointer;	/* of thread-local storage */
};

struct trib_copy {
	struct trib_sample sample;
	__u64 words[TRIB_SAMPLE_WORDS_MAX];	/* frames, then the tail; the sample's counts say how many are set */
	struct trib_resume resume;
	__u8 stack[];		/* the first sample.stack_bytes bytes are set */
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
