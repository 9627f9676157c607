/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_RECORDS_H
#define TRIBUTARY_BPF_RECORDS_H

/*
 * Definitions that BPF programs and the collector share: records, counters, limits. All fields have a fixed width, and
 * padding is explicit. Both sides assert the sizes. Times are CLOCK_MONOTONIC in ns, unless stated otherwise. A BPF
 * source must define the types __u8 to __u64 before it includes this header.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/runtimes.h"
#include "bpf/include/sample_types.h"

#define TRIB_USER_FRAMES_MAX 512
#define TRIB_KERNEL_FRAMES_MAX 128
#define TRIB_COMM_BYTES 16

/*
 * The contexts in which programs run: X(NAME, name). On one CPU, programs of the same context never interrupt each
 * other, but they may interrupt programs of another context. So each context has its own state and counters, and no
 * program needs atomic operations.
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
 * The counters are in a per-CPU array, which has one slot (TRIB_COUNTER_SLOT) for each context, sample type and
 * counter. A count that belongs to no sample, such as the run time, is added to the sample type of the program. A
 * collector of another release may read the counters that a killed collector left. So if the order of the counters
 * changes, TRIB_SESSION_VERSION (session.h) must change, too.
 */
enum trib_counter {
	TRIB_CAPTURED = 0,	/* program runs that took a sample: each sample is delivered or counted as lost */
	TRIB_IDLE,		/* program runs in the idle task without a sample (trib_config.sample_idle is 0) */
	TRIB_LOST_RING_FULL,	/* captured, but the ring buffer was full */
	TRIB_LOST_STACK_ERROR,	/* captured, but the per-CPU scratch record was missing */
	TRIB_KERNEL_STACK_FAILED,	/* samples delivered without their kernel stack */
	TRIB_COPIES,		/* samples with a stack copy: the collector continues the walk of the user stack */
	TRIB_COPY_RING_FULL,	/* samples delivered without a stack copy: the ring of copies was full */
	TRIB_RUN_NS,		/* time spent in the runs of the sampling program that took a sample */
	TRIB_COUNTER_COUNT,
};

#define TRIB_COUNTER_SLOT(context, type, counter) (((context) * TRIB_SAMPLE_TYPES_MAX + (type)) * TRIB_COUNTER_COUNT + (counter))
#define TRIB_COUNTER_SLOTS(contexts) ((contexts) * TRIB_SAMPLE_TYPES_MAX * TRIB_COUNTER_COUNT)

enum trib_flags {
	TRIB_FLAG_KERNEL_THREAD = 1,	/* the thread has no user memory: PF_KTHREAD */
	TRIB_FLAG_KERNEL_STACK_FAILED = 4,
	TRIB_FLAG_IN_KERNEL = 16,	/* interrupted in kernel mode */
};

/*
 * Why the walk of the user stack stopped. The frame at which it stopped is the sample's last frame. unwind.h explains
 * rules, rows, pages and mappings.
 */
enum trib_stop {
	TRIB_STOP_NONE = 0,	/* no user stack: a kernel thread, or memory that was already released */
	TRIB_STOP_END,		/* the rule says that this is the outermost frame */
	TRIB_STOP_FRAME_POINTER_END, /* the return address is 0; or the frame pointer is 0 in code without rows */
	TRIB_STOP_STACK_START,	/* code without rows, near the start of the stack: TRIB_START_STACK_BYTES */
	TRIB_STOP_DEPTH,	/* the stack has more than TRIB_USER_FRAMES_MAX frames */
	TRIB_STOP_NO_PROCESS,	/* trib_processes has no entry for this pid, or the entry of another program */
	TRIB_STOP_NO_MAPPING,
	TRIB_STOP_NO_PAGE,	/* the rows of this page are not loaded */
	TRIB_STOP_BAD_RULE,
	TRIB_STOP_UNREADABLE,	/* user memory was paged out, or is invalid */
	TRIB_STOP_NO_PROGRESS,	/* the caller's frame would not lie above its callee's frame */
	TRIB_STOP_COUNT,
};

/*
 * A flag in the address of a user frame: the code was interrupted at this address (by a signal, a fault or a device),
 * so it is not a return address. User addresses are below 2^56.
 */
#define TRIB_FRAME_INTERRUPTED (1ull << 63)

/*
 * One sample. This header is followed by `kernel_frames` addresses and then by `user_frames` addresses, in both cases
 * the innermost frame first. If the thread was interrupted in the kernel, the first kernel address is an instruction
 * pointer, otherwise the first user address. All other addresses are return addresses, except user addresses with
 * TRIB_FRAME_INTERRUPTED.
 *
 * After the frames come `runtime_words` words with the chains of language runtimes (runtimes.h), in the order of the
 * stack: the innermost chain first.
 *
 * Last comes the tail: one __u64 for each bit that is set in `tail`, the lowest bit first. The bit says what its word
 * means. Readers skip the words of unknown bits.
 */
struct trib_sample {
	__u64 time_ns;
	__u64 value;		/* in the unit of the sample type; for a CPU sample the sampling period in ns */
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 cgroup_v2_id;	/* of the task's cgroup in the unified hierarchy */
	__u64 cgroup_v1_id;	/* of the task's cgroup in the v1 hierarchy of trib_config.cgroup_v1; 0: none */
	__u64 exec_id;		/* task_struct.self_exec_id */
	__u32 pid;		/* thread group id, initial namespace */
	__u32 tid;
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u16 flags;		/* enum trib_flags */
	__u16 runtime_words;	/* words of the chains */
	__u8 stop;		/* enum trib_stop */
	__u8 type;		/* enum trib_sample_type */
	__u16 tail;		/* bits: which words follow the chains */
	__u32 table;		/* trib_process.table that the walk used; 0: none */
	__u32 stack_bytes;	/* size of the stack copy; 0 in the ring trib_samples */
	char comm[TRIB_COMM_BYTES];	/* of the thread */
	/* __u64 frames[], chains[], tail[] follow */
};

#define TRIB_SAMPLE_HEADER_BYTES 96
#define TRIB_FRAMES_MAX (TRIB_USER_FRAMES_MAX + TRIB_KERNEL_FRAMES_MAX)
#define TRIB_TAIL_WORDS_MAX 16	/* number of bits in `tail` */
/* __u64 words after the header. Chains use the words that frames and tail leave. */
#define TRIB_SAMPLE_WORDS_MAX 1024
#define TRIB_COPY_WORDS_MAX (TRIB_FRAMES_MAX + TRIB_TAIL_WORDS_MAX)	/* the same for a record with a copy of the stack */
#define TRIB_SAMPLE_BYTES_MAX (TRIB_SAMPLE_HEADER_BYTES + 8 * TRIB_SAMPLE_WORDS_MAX)
#define TRIB_COPY_SAMPLE_BYTES (TRIB_SAMPLE_HEADER_BYTES + 8 * TRIB_COPY_WORDS_MAX)

/*
 * A sample with the data that the collector needs to continue the walk. The walk stopped because the process, the
 * mapping or the page was missing in the BPF maps (TRIB_STOP_NO_PROCESS, _NO_MAPPING, _NO_PAGE). `resume` has the
 * registers of the last frame. `stack` begins at the address `resume.sp`. In the ring trib_copies each copy is one
 * record, which has one of three fixed sizes. The function copy_bytes selects the size by the size of the stack, or by
 * the readable memory above sp.
 */
#define TRIB_COPY_BYTES_SMALL 4096
#define TRIB_COPY_BYTES_MEDIUM 16384
#define TRIB_COPY_BYTES_LARGE 65536

struct trib_resume {
	__u64 pc, sp, fp, second;	/* registers; pc has no TRIB_FRAME_INTERRUPTED; second: rbx or x30 */
	__u64 start_stack;	/* the process's initial stack pointer (mm_struct.start_stack) */
	__u64 thread_pointer;	/* register of thread-local storage */
	struct trib_executable_key executable;	/* of the process */
};

struct trib_copy {
	struct trib_sample sample;
	__u64 words[TRIB_COPY_WORDS_MAX];	/* frames, chains, tail; `sample` says how many words are set */
	struct trib_resume resume;
	__u8 stack[];		/* the first sample.stack_bytes bytes are set */
};

#define TRIB_COPY_HEADER_BYTES (TRIB_COPY_SAMPLE_BYTES + 64)

#ifdef __cplusplus
static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES);
static_assert(sizeof(struct trib_copy) == TRIB_COPY_HEADER_BYTES);
#else
_Static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES, "trib_sample");
_Static_assert(sizeof(struct trib_copy) == TRIB_COPY_HEADER_BYTES, "trib_copy");
#endif

#endif
