// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/*
 * Samples what runs: one perf event (cpu-clock) per CPU calls trib_sample_cpu once a period. It runs in the timer's
 * interrupt and never nests on a CPU.
 */
#include <linux/bpf.h>

#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>

#include "bpf/stack_copy.bpf.h"
#include "bpf/state.bpf.h"
#include "bpf/unwind.bpf.h"
#ifdef TRIB_TEST_STOP
#include "bpf/test_stop.bpf.h"
#endif

#define KERNEL_BYTES_MAX (8 * TRIB_KERNEL_FRAMES_MAX)

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

/* All of the header but what the stacks say. */
static __always_inline void describe(struct trib_state *state, struct task_struct *task, __u64 time_ns)
{
	struct trib_sample *sample = &state->sample;
	struct css_set *cgroups = BPF_CORE_READ(task, cgroups);
	__u64 pid_tgid = bpf_get_current_pid_tgid();
	struct trib_control *control;
	__u32 key = 0;

	control = bpf_map_lookup_elem(&trib_control, &key);
	__builtin_memset(sample, 0, sizeof(*sample));
	sample->time_ns = time_ns;
	sample->period_ns = control ? *(volatile __u64 *)&control->period_ns : 0;
	state->walk.withdrawals = control ? *(volatile __u64 *)&control->withdrawals : 0;
	sample->start_time_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	sample->cgroup_v2_id = BPF_CORE_READ(cgroups, dfl_cgrp, kn, id);
	sample->cgroup_v1_id = cgroup_v1_id(cgroups);
	sample->exec_id = BPF_CORE_READ(task, self_exec_id);
	sample->pid = pid_tgid >> 32;
	sample->tid = (__u32)pid_tgid;
	sample->cpu = bpf_get_smp_processor_id();
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		sample->flags |= TRIB_FLAG_KERNEL_THREAD;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
}

static __always_inline void read_kernel_stack(void *context, struct trib_state *state)
{
	long bytes = bpf_get_stack(context, state->frames, KERNEL_BYTES_MAX, 0);

	if (bytes <= 0 || bytes > KERNEL_BYTES_MAX) {
		state->sample.flags |= TRIB_FLAG_KERNEL_STACK_FAILED;
		count(TRIB_KERNEL_STACK_FAILED);
		return;
	}
	state->sample.kernel_frames = (__u64)bytes / 8;
}

/* Whether the collector's table of the process is of this very program; if so, the walk has it. */
static __always_inline int find_process(struct trib_state *state)
{
	__u32 pid = state->sample.pid;
	struct trib_process *process = bpf_map_lookup_elem(&trib_processes, &pid);

	if (!process || process->start_time_ns != state->sample.start_time_ns ||
	    process->exec_id != state->sample.exec_id)
		return 0;
	state->walk.first_mapping = process->first_mapping;
	state->walk.mapping_count = process->mapping_count;
	state->walk.mapping = process->first_mapping;
	state->sample.table = process->table;
	return 1;
}

static __always_inline __u32 first_frame_only(struct trib_state *state, __u32 stop)
{
	__u32 at = state->sample.kernel_frames;

	state->frames[at & (TRIB_STATE_FRAMES - 1)] = state->walk.pc | state->walk.fault;
	state->sample.user_frames = 1;
	return stop;
}

/* By rows, from the registers of the user side. */
static __always_inline __u32 walk_user_stack(struct trib_perf_event_context *context, struct trib_state *state,
					     struct task_struct *task)
{
	__u32 stop = 0, i;

	if (read_registers(context, state, task))
		return TRIB_STOP_NONE;
	start_walk(&state->walk, &state->registers);
	state->walk.start_stack = BPF_CORE_READ(task, mm, start_stack);
	state->walk.thread_pointer = thread_pointer(task);
	state->walk.fault = TRIB_IN_USER(context) || is_system_call(&state->registers, task) ? 0 : TRIB_FRAME_INTERRUPTED;
	if (is_32_bit(&state->registers))
		return first_frame_only(state, TRIB_STOP_BAD_RULE);
	if (!find_process(state))
		return first_frame_only(state, TRIB_STOP_NO_PROCESS);
	for (i = 0; i < TRIB_USER_FRAMES_MAX; i++) {
		stop = trib_step();
		if (stop)
			return stop;
	}
	return TRIB_STOP_DEPTH;
}

/*
 * A task that runs in the kernel only has no user stack and that is no failure; nor is it when one inside execve or exit
 * has given its memory back already.
 */
static __always_inline int has_user_stack(struct task_struct *task)
{
	return !(BPF_CORE_READ(task, flags) & (PF_KTHREAD | PF_IO_WORKER)) && BPF_CORE_READ(task, mm);
}

static __always_inline int lost_its_stack(const struct trib_state *state)
{
	if (!(state->sample.flags & TRIB_FLAG_IN_KERNEL) || state->sample.user_frames != 1)
		return 0;
	if (state->sample.stop == TRIB_STOP_UNREADABLE)
		return 1;
	return wants_copy(state) && !is_readable(state->walk.sp);
}

static __always_inline void emit(struct trib_state *state)
{
	__u64 bytes = TRIB_SAMPLE_HEADER_BYTES + 8 * (state->sample.kernel_frames + state->sample.user_frames);

	CLAMP(bytes, TRIB_SAMPLE_BYTES_MAX);
	if (bpf_ringbuf_output(&trib_samples, &state->sample, bytes, BPF_RB_NO_WAKEUP))
		count(TRIB_LOST_RING_FULL);
}

SEC("perf_event")
int trib_sample_cpu(struct trib_perf_event_context *context)
{
	__u64 time_ns = bpf_ktime_get_ns();
	struct trib_state *state;
	struct task_struct *task;

	/* Every CPU's idle task, and no other, has thread id 0. */
	if ((__u32)bpf_get_current_pid_tgid() == 0 && !config.sample_idle) {
		count(TRIB_IDLE);
		return 0;
	}
	count(TRIB_CAPTURED);

	state = this_state();
	if (!state) {
		count(TRIB_LOST_STACK_ERROR);
		return 0;
	}
	task = (struct task_struct *)bpf_get_current_task();
	describe(state, task, time_ns);
	if (!TRIB_IN_USER(context)) {
		state->sample.flags |= TRIB_FLAG_IN_KERNEL;
		read_kernel_stack(context, state);
	}
	if (has_user_stack(task))
		state->sample.stop = walk_user_stack(context, state, task);
	if (lost_its_stack(state)) {
		state->sample.stop = TRIB_STOP_NONE;
		state->sample.user_frames = 0;
	}
	if (!wants_copy(state) || !trib_emit_copy())
		emit(state);
#ifdef TRIB_TEST_STOP
	stop_if_asked(&state->sample);
#endif
	count_by(TRIB_RUN_NS, bpf_ktime_get_ns() - time_ns);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
