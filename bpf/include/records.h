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

#define TRIB_USER_FRAMES_MAX 127   /* perf's own limit (kernel.perf_event_max_stack) */
#define TRIB_KERNEL_FRAMES_MAX 127
#define TRIB_COMM_BYTES 16

/* Counters, one per-CPU array slot each. Order is ABI with the collector only; both are built together. */
enum trib_counter {
	TRIB_CAPTURED = 0,	/* program entries on a busy CPU: what the law starts from */
	TRIB_IDLE,		/* program entries in the idle task: not samples */
	TRIB_LOST_RING_FULL,	/* captured, and the ring buffer had no room */
	TRIB_LOST_STACK_ERROR,	/* captured, and the per-CPU scratch record was missing */
	TRIB_KERNEL_STACK_FAILED,	/* sample kept without its kernel stack */
	TRIB_USER_STACK_FAILED,	/* sample kept without its user stack */
	TRIB_COUNTER_COUNT,
};

enum trib_flags {
	TRIB_FLAG_KERNEL_THREAD = 1,	/* no user memory: PF_KTHREAD */
	TRIB_FLAG_USER_STACK_FAILED = 2,
	TRIB_FLAG_KERNEL_STACK_FAILED = 4,
	TRIB_FLAG_USER_TRUNCATED = 8,	/* the user stack filled TRIB_USER_FRAMES_MAX */
	TRIB_FLAG_IN_KERNEL = 16,	/* interrupted in kernel mode */
};

/*
 * One sample, as long as its frames need: header, then kernel_frames addresses leaf first, then user_frames addresses leaf
 * first. The first address of the interrupted mode is an instruction pointer, every other one a return address.
 */
struct trib_sample {
	__u64 time_ns;
	__u64 period_ns;	/* the sampling period in force */
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u64 cgroup_v2_id;	/* of the task's cgroup in the unified hierarchy */
	__u64 cgroup_v1_id;	/* of its cgroup in the v1 hierarchy named by configuration; 0 when there is none */
	__u32 pid;		/* thread group id, initial namespace */
	__u32 tid;
	__u32 cpu;
	__u16 kernel_frames;
	__u16 user_frames;
	__u32 flags;
	__u32 padding;
	char comm[TRIB_COMM_BYTES];	/* of the thread */
	__u64 frames[];
};

#define TRIB_SAMPLE_HEADER_BYTES 80
#define TRIB_SAMPLE_BYTES_MAX (TRIB_SAMPLE_HEADER_BYTES + 8 * (TRIB_USER_FRAMES_MAX + TRIB_KERNEL_FRAMES_MAX))

#ifdef __cplusplus
static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES);
#else
_Static_assert(sizeof(struct trib_sample) == TRIB_SAMPLE_HEADER_BYTES, "trib_sample");
#endif

#endif
