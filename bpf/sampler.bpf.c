// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Samples what runs: one perf event (cpu-clock) per CPU calls trib_sample_cpu once a period. It runs in the timer's
 * interrupt, never nests on a CPU, and costs about 2.5 µs with a 28-frame stack.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/include/compat.h"
#include "bpf/include/config.h"
#include "bpf/include/kernel_types.h"
#include "bpf/include/records.h"

#define STACK_BYTES_MAX (8 * TRIB_USER_FRAMES_MAX)
_Static_assert(TRIB_USER_FRAMES_MAX == TRIB_KERNEL_FRAMES_MAX, "one bound serves both stacks");

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

/*
 * Where a record is put together: too big for the 512-byte BPF stack.
 * Writer and reader: trib_sample_cpu. Bytes: TRIB_SAMPLE_BYTES_MAX per possible CPU. Never full: one element.
 */
struct trib_scratch {
	__u8 bytes[TRIB_SAMPLE_BYTES_MAX];
} __attribute__((aligned(8)));

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__type(key, __u32);
	__type(value, struct trib_scratch);
	__uint(max_entries, 1);
} trib_scratch SEC(".maps");

/*
 * Records, struct trib_sample each.
 * Writer: trib_sample_cpu. Reader: the collector, on a timer, so nobody is woken.
 * Bytes: set by the collector before loading, see ProbeOptions. When full, the sample is counted as
 * TRIB_LOST_RING_FULL and dropped.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024);
} trib_samples SEC(".maps");

/* A per-CPU slot with one writer that does not nest: no atomic needed. */
static __always_inline void count(__u32 which)
{
	__u64 *slot = bpf_map_lookup_elem(&trib_counters, &which);

	if (slot)
		*slot += 1;
}

static __always_inline __u64 cgroup_v1_id(struct css_set *cgroups)
{
	struct cgroup_subsys_state *state = NULL;
	int index = trib_cgroup_v1_index(config.cgroup_v1);
	void *slots;

	if (index < 0)
		return 0;
	slots = __builtin_preserve_access_index(&cgroups->subsys[0]);
	if (bpf_probe_read_kernel(&state, sizeof(state), slots + index * sizeof(state)))
		return 0;
	return BPF_CORE_READ(state, cgroup, kn, id);
}

static __always_inline void describe_task(struct trib_sample *sample, struct task_struct *task)
{
	struct css_set *cgroups = BPF_CORE_READ(task, cgroups);

	sample->start_time_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	sample->cgroup_v2_id = BPF_CORE_READ(cgroups, dfl_cgrp, kn, id);
	sample->cgroup_v1_id = cgroup_v1_id(cgroups);
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
}

/* Addresses into `frames`, leaf first; returns bytes written, at most STACK_BYTES_MAX, 0 on failure. */
static __always_inline __u32 read_kernel_stack(void *context, struct trib_sample *sample, __u64 *frames)
{
	long bytes = bpf_get_stack(context, frames, STACK_BYTES_MAX, 0);

	if (bytes <= 0 || bytes > STACK_BYTES_MAX) {
		sample->flags |= TRIB_FLAG_KERNEL_STACK_FAILED;
		count(TRIB_KERNEL_STACK_FAILED);
		return 0;
	}
	return bytes;
}

/*
 * Addresses into `frames`, leaf first, by frame pointers; returns bytes written, at most STACK_BYTES_MAX. Interrupted in
 * the kernel, it starts at the registers saved on entry. A task that runs in the kernel only, or gave its memory back
 * already (inside exit), has no user stack and that is no failure.
 */
static __always_inline __u32 read_user_stack(void *context, struct trib_sample *sample, struct task_struct *task,
					     __u64 *frames)
{
	long bytes;

	if (BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER) || !BPF_CORE_READ(task, mm))
		return 0;
	bytes = bpf_get_stack(context, frames, STACK_BYTES_MAX, BPF_F_USER_STACK);
	if (bytes == 0)	/* the kernel itself knows that there is none: it always gives at least the instruction pointer */
		return 0;
	if (bytes < 0 || bytes > STACK_BYTES_MAX) {
		sample->flags |= TRIB_FLAG_USER_STACK_FAILED;
		count(TRIB_USER_STACK_FAILED);
		return 0;
	}
	if (bytes >= 8 * (long)config.frames_max)
		sample->flags |= TRIB_FLAG_USER_TRUNCATED;
	return bytes;
}

SEC("perf_event")
int trib_sample_cpu(struct trib_perf_event_context *context)
{
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	__u32 key = 0, kernel_bytes = 0, user_bytes, bytes;
	struct task_struct *task;
	struct trib_scratch *scratch;
	struct trib_sample *sample;

	/* Every CPU's idle task, and no other, has thread id 0. */
	if ((__u32)pid_tgid == 0 && !config.sample_idle) {
		count(TRIB_IDLE);
		return 0;
	}
	count(TRIB_CAPTURED);

	scratch = bpf_map_lookup_elem(&trib_scratch, &key);
	if (!scratch) {
		count(TRIB_LOST_STACK_ERROR);
		return 0;
	}
	sample = (struct trib_sample *)scratch->bytes;
	sample->time_ns = bpf_ktime_get_ns();
	sample->period_ns = config.period_ns;
	sample->pid = pid_tgid >> 32;
	sample->tid = (__u32)pid_tgid;
	sample->cpu = bpf_get_smp_processor_id();
	sample->flags = 0;
	sample->padding = 0;

	task = (struct task_struct *)bpf_get_current_task();
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		sample->flags |= TRIB_FLAG_KERNEL_THREAD;
	describe_task(sample, task);

	if (!TRIB_IN_USER(context)) {
		sample->flags |= TRIB_FLAG_IN_KERNEL;
		kernel_bytes = read_kernel_stack(context, sample, (void *)(scratch->bytes + TRIB_SAMPLE_HEADER_BYTES));
	}
	CLAMP(kernel_bytes, STACK_BYTES_MAX);
	user_bytes = read_user_stack(context, sample, task,
				     (void *)(scratch->bytes + TRIB_SAMPLE_HEADER_BYTES + kernel_bytes));
	sample->kernel_frames = kernel_bytes / 8;
	sample->user_frames = user_bytes / 8;

	bytes = TRIB_SAMPLE_HEADER_BYTES + kernel_bytes + user_bytes;
	CLAMP(bytes, TRIB_SAMPLE_BYTES_MAX);
	if (bpf_ringbuf_output(&trib_samples, sample, bytes, BPF_RB_NO_WAKEUP))
		count(TRIB_LOST_RING_FULL);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
