/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TAKE_SAMPLE_BPF_H
#define TRIBUTARY_BPF_TAKE_SAMPLE_BPF_H

/* The steps of every program that takes samples: begin_sample, read_stacks, finish_sample. */

#include <bpf/bpf_core_read.h>

#include "bpf/cgroup_ids.bpf.h"
#include "bpf/chains.bpf.h"
#include "bpf/stack_copy.bpf.h"
#include "bpf/state.bpf.h"
#include "bpf/unwind.bpf.h"

#define KERNEL_BYTES_MAX (8 * TRIB_KERNEL_FRAMES_MAX)

/*
 * Records, struct trib_sample each.
 * Writer: every program. Reader: the collector, on a timer. Only has_young_chain makes a program wake the reader.
 * Bytes: set by the collector before loading, see ProbeOptions. When the ring is full, the sample is counted as
 * TRIB_LOST_RING_FULL and dropped.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 128 * 1024);
} trib_samples SEC(".maps");

/* Fills all fields of the header except the value and the fields that depend on the stacks. */
static __always_inline void describe(struct trib_state *state, struct trib_program program,
				     const struct trib_control *control, __u64 time_ns)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();
	struct trib_sample *sample = &state->sample;
	struct css_set *cgroups = BPF_CORE_READ(task, cgroups);
	__u64 pid_tgid = bpf_get_current_pid_tgid();

	__builtin_memset(sample, 0, sizeof(*sample));
	sample->time_ns = time_ns;
	sample->type = program.type;
	state->walk.runtimes = 0;
	state->walk.withdrawals = control ? *(const volatile __u64 *)&control->withdrawals : 0;
	sample->start_time_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	sample->cgroup_v2_id = cgroup_v2_id(cgroups);
	sample->cgroup_v1_id = cgroup_v1_id(cgroups);
	sample->exec_id = BPF_CORE_READ(task, self_exec_id);
	sample->pid = pid_tgid >> 32;
	sample->tid = (__u32)pid_tgid;
	sample->cpu = bpf_get_smp_processor_id();
	if (BPF_CORE_READ(task, flags) & PF_KTHREAD)
		sample->flags |= TRIB_FLAG_KERNEL_THREAD;
	bpf_get_current_comm(sample->comm, sizeof(sample->comm));
}

static __always_inline void read_kernel_stack(void *context, struct trib_state *state, struct trib_program program)
{
	long bytes = bpf_get_stack(context, state->frames, KERNEL_BYTES_MAX, 0);

	if (bytes <= 0 || bytes > KERNEL_BYTES_MAX) {
		state->sample.flags |= TRIB_FLAG_KERNEL_STACK_FAILED;
		count(program, TRIB_KERNEL_STACK_FAILED);
		return;
	}
	state->sample.kernel_frames = (__u64)bytes / 8;
}

/*
 * Finds the process's mapping table and stores it in the walk. Returns 0 if there is no table, or if the table belongs
 * to another program with this pid (before an exec, or a reused pid).
 */
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
	state->walk.runtimes = process->runtimes;
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

/*
 * Walks the user stack by rows. The walk starts from state->registers, which are the user-side registers. Returns the
 * trib_stop.
 */
static __always_inline __u32 walk_user_stack(struct trib_state *state, struct task_struct *task, __u32 context)
{
	int in_user = !(state->sample.flags & TRIB_FLAG_IN_KERNEL);
	__u32 stop = 0, i;

	start_walk(&state->walk, &state->registers);
	state->walk.start_stack = BPF_CORE_READ(task, mm, start_stack);
	state->walk.thread_pointer = thread_pointer(task);
	state->walk.fault = in_user || is_system_call(&state->registers, task) ? 0 : TRIB_FRAME_INTERRUPTED;
	if (is_32_bit(&state->registers))
		return first_frame_only(state, TRIB_STOP_BAD_RULE);
	if (!find_process(state)) {
		state->walk.runtimes = runtimes_of_executable(task);
		return first_frame_only(state, TRIB_STOP_NO_PROCESS);
	}
	for (i = 0; i < TRIB_USER_FRAMES_MAX; i++) {
		stop = trib_step(context);
		if (stop)
			return stop;
	}
	return TRIB_STOP_DEPTH;
}

/*
 * Returns 0 for a task that runs only in the kernel, and for a task inside execve or exit that has already released its
 * memory. Such tasks have no user stack, which is not a failure.
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

static __always_inline __u32 tail_words(__u16 tail)
{
	__u32 words = 0, bit;

	if (!tail)
		return 0;
	for (bit = 0; bit < TRIB_TAIL_WORDS_MAX; bit++)
		words += tail >> bit & 1;
	return words;
}

static __always_inline __u32 words_before_tail(const struct trib_sample *sample)
{
	return (__u32)sample->kernel_frames + sample->user_frames + sample->runtime_words;
}

static __always_inline void emit(struct trib_state *state, struct trib_program program)
{
	__u32 words = words_before_tail(&state->sample) + tail_words(state->sample.tail);
	__u64 bytes = TRIB_SAMPLE_HEADER_BYTES + 8 * (__u64)words;

	CLAMP(bytes, TRIB_SAMPLE_BYTES_MAX);
	if (bpf_ringbuf_output(&trib_samples, &state->sample, bytes,
			       has_young_chain(state) ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP))
		count(program, TRIB_LOST_RING_FULL);
}

/*
 * Begins a sample of the current thread in the state of the program's context. Returns NULL if the sample is lost, and
 * counts the loss. The caller must set the value, call read_stacks, optionally call add_to_tail, and call
 * finish_sample. `control` is this_control().
 */
static __always_inline struct trib_state *begin_sample(struct trib_program program,
						       const struct trib_control *control, __u64 time_ns)
{
	struct trib_state *state = this_state(program.context);

	count(program, TRIB_CAPTURED);
	if (!state) {
		count(program, TRIB_LOST_STACK_ERROR);
		return NULL;
	}
	describe(state, program, control, time_ns);
	return state;
}

/*
 * Reads the kernel stack and walks the user stack. `context` is the BPF program's argument. If in_user is 1, the caller
 * must have copied the interrupted registers into state->registers. Otherwise this function reads the registers that
 * the thread's entry to the kernel saved.
 */
static __always_inline void read_stacks(void *context, struct trib_state *state, struct trib_program program, int in_user)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	if (!in_user) {
		state->sample.flags |= TRIB_FLAG_IN_KERNEL;
		read_kernel_stack(context, state, program);
	}
	if (has_user_stack(task) && (in_user || !read_entry_registers(state, task)))
		state->sample.stop = walk_user_stack(state, task, program.context);
	if (lost_its_stack(state)) {
		state->sample.stop = TRIB_STOP_NONE;
		state->sample.user_frames = 0;
	}
	if (state->walk.runtimes && state->sample.user_frames)
		trib_walk_chains(program.context);
}

/* Appends one word to the tail. The caller must call read_stacks first, and must add bits in ascending order. */
static __always_inline void add_to_tail(struct trib_state *state, __u32 bit, __u64 word)
{
	__u32 at = words_before_tail(&state->sample) + tail_words(state->sample.tail);

	state->frames[at & (TRIB_STATE_FRAMES - 1)] = word;
	state->sample.tail |= 1u << bit;
}

static __always_inline void finish_sample(struct trib_state *state, struct trib_program program)
{
	if (!wants_copy(state) || !trib_emit_copy(program.context))
		emit(state, program);
}

#endif
