/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PROCESS_EVENTS_BPF_H
#define TRIBUTARY_BPF_PROCESS_EVENTS_BPF_H

/*
 * Reports fork, exec and exit of every process. The programs run at raw tracepoints. Unlike the perf sideband, they
 * report the exact start time, the exit code and the cgroups, and they count every lost event.
 */

#include <bpf/bpf_core_read.h>

#include "bpf/cgroup_ids.bpf.h"
#include "bpf/include/process_events.h"
#include "bpf/state.bpf.h"

/*
 * Records, struct trib_process_event each.
 * Writer: the programs of this file. Reader: the collector, on a timer, and woken when a quarter of the ring is filled.
 * Bytes: set by the collector before loading, see ProbeOptions. When the ring is full, the event is counted as
 * TRIB_LOST_RING_FULL and dropped; a FINAL record is dropped without a count, because it is no event.
 */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} trib_events SEC(".maps");

/*
 * Processes whose exit was reported and that were not released yet. Two threads that end at the same time can both see
 * that no thread is left.
 * Writer and reader: the programs of this file. Bytes: about 100 for each entry. The collector sets their number before
 * loading (EndedProcessesMax). When full, the entry that was used least recently is replaced: then the process has no
 * FINAL record, and its exit could be reported twice, if thousands of processes end between two of its threads.
 */
#define TRIB_EEXIST 17	/* include/uapi/asm-generic/errno-base.h */
struct trib_exited_key {
	__u64 start_time_ns;
	__u64 pid;
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct trib_exited_key);
	__type(value, __u8);
} trib_exited SEC(".maps");

/* Unlike count(): an interrupt may run one of these programs while another runs on the CPU. */
static __always_inline void count_event_by(__u32 counter, __u64 amount)
{
	__u32 slot = TRIB_COUNTER_SLOT(TRIB_CONTEXT_TICK, TRIB_TYPE_PROCESS_EVENT, counter);
	__u64 *value = bpf_map_lookup_elem(&trib_counters, &slot);

	if (value)
		__sync_fetch_and_add(value, amount);
}

static __always_inline void count_event(__u32 counter)
{
	count_event_by(counter, 1);
}

static __always_inline __u64 events_wakeup(void)
{
	__u64 filled = bpf_ringbuf_query(&trib_events, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&trib_events, BPF_RB_RING_SIZE);

	return filled > size / WAKEUP_SHARE ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

static __always_inline void describe_process(struct trib_process_event *event, struct task_struct *task, __u32 kind)
{
	struct css_set *cgroups = BPF_CORE_READ(task, cgroups);

	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->kind = kind;
	event->start_time_ns = BPF_CORE_READ(task, group_leader, start_boottime);
	event->pid = BPF_CORE_READ(task, tgid);
	event->parent = BPF_CORE_READ(task, real_parent, tgid);
	event->uid = BPF_CORE_READ(task, cred, euid.val);
	event->cgroup_v2_id = cgroup_v2_id(cgroups);
	event->cgroup_v1_id = cgroup_v1_id(cgroups);
	BPF_CORE_READ_INTO(&event->comm, task, group_leader, comm);
}

/* Begins a record about the task's process. Returns NULL if the ring is full. */
static __always_inline struct trib_process_event *begin_event(struct task_struct *task, __u32 kind)
{
	struct trib_process_event *event = bpf_ringbuf_reserve(&trib_events, sizeof(*event), 0);

	if (event)
		describe_process(event, task, kind);
	return event;
}

/* Ends the record, and counts the run time of the program, which began at `began_ns`. */
static __always_inline void submit(struct trib_process_event *event, __u64 began_ns)
{
	bpf_ringbuf_submit(event, events_wakeup());
	count_event_by(TRIB_RUN_NS, bpf_ktime_get_ns() - began_ns);
}

static __always_inline void report(struct task_struct *task, __u32 kind)
{
	__u64 began_ns = bpf_ktime_get_ns();
	struct trib_process_event *event;

	count_event(TRIB_CAPTURED);
	event = begin_event(task, kind);
	if (!event)
		count_event(TRIB_LOST_RING_FULL);
	else
		submit(event, began_ns);
}

/* The time of threads that were released is in the signal struct. A thread that was not released has its own. */
static __always_inline void read_released_times(struct trib_process_event *event, struct signal_struct *signal)
{
	event->user_ns = BPF_CORE_READ(signal, utime);
	event->system_ns = BPF_CORE_READ(signal, stime);
	event->runtime_ns = BPF_CORE_READ(signal, sum_sched_runtime);
	event->peak_rss_pages = BPF_CORE_READ(signal, maxrss);
}

static __always_inline void add_times(struct trib_process_event *event, struct task_struct *task)
{
	event->user_ns += BPF_CORE_READ(task, utime);
	event->system_ns += BPF_CORE_READ(task, stime);
	event->runtime_ns += BPF_CORE_READ(task, se.sum_exec_runtime);
}

/* The tracepoint's arguments: parent, child. */
SEC("raw_tp/sched_process_fork")
int trib_process_fork(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *child = (struct task_struct *)context->args[1];

	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid) || BPF_CORE_READ(child, flags) & PF_KTHREAD)
		return 0;
	report(child, TRIB_EVENT_START);
	return 0;
}

/* The tracepoint's first argument: the task. It now has the leader's id, whichever thread called exec. */
SEC("raw_tp/sched_process_exec")
int trib_process_exec(struct bpf_raw_tracepoint_args *context)
{
	report((struct task_struct *)context->args[0], TRIB_EVENT_EXEC);
	return 0;
}

/* The tracepoint's first argument: the task. It runs for every thread. */
SEC("raw_tp/sched_process_exit")
int trib_process_exit(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 began_ns = bpf_ktime_get_ns();
	struct trib_process_event *event;
	struct trib_exited_key key = {};
	__u8 one = 1;

	if (BPF_CORE_READ(signal, live.counter) != 0 || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	key.start_time_ns = BPF_CORE_READ(leader, start_boottime);
	key.pid = BPF_CORE_READ(task, tgid);
	/*
	 * The kernel calls the map's function directly. Before Linux 6.4 (commit d7ba4cc900bf) this function returns an int,
	 * and the upper half of the register is undefined.
	 */
	if ((int)bpf_map_update_elem(&trib_exited, &key, &one, BPF_NOEXIST) == -TRIB_EEXIST)
		return 0;
	count_event(TRIB_CAPTURED);
	event = begin_event(task, TRIB_EVENT_EXIT);
	if (!event) {
		count_event(TRIB_LOST_RING_FULL);
		return 0;
	}
	read_released_times(event, signal);
	add_times(event, task);
	if (leader != task)
		add_times(event, leader);
	event->exit_status = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code) :
									    BPF_CORE_READ(leader, exit_code);
	if (BPF_CORE_READ(signal, oom_mm))
		event->flags |= TRIB_EVENT_OOM;
	submit(event, began_ns);
	return 0;
}

/*
 * The tracepoint's argument: a task that was released. The leader is released last: the parent waits for it, and it
 * stays until all other threads are gone.
 */
SEC("raw_tp/sched_process_free")
int trib_process_free(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u64 began_ns = bpf_ktime_get_ns();
	struct trib_process_event *event;
	struct trib_exited_key key = {};

	if (BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	key.start_time_ns = BPF_CORE_READ(task, start_boottime);
	key.pid = BPF_CORE_READ(task, tgid);
	bpf_map_delete_elem(&trib_exited, &key);
	event = bpf_ringbuf_reserve(&trib_events, sizeof(*event), 0);
	if (!event)
		return 0;
	__builtin_memset(event, 0, sizeof(*event));
	event->time_ns = bpf_ktime_get_ns();
	event->kind = TRIB_EVENT_FINAL;
	event->start_time_ns = key.start_time_ns;
	event->pid = key.pid;
	read_released_times(event, BPF_CORE_READ(task, signal));
	submit(event, began_ns);
	return 0;
}

/* Lists the processes that run now. The collector reads the list once, after the other programs were attached. */
SEC("iter/task")
int trib_list_processes(struct bpf_iter__task *context)
{
	struct task_struct *task = context->task;
	struct trib_process_event event;

	if (!task || BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) || BPF_CORE_READ(task, flags) & PF_KTHREAD ||
	    BPF_CORE_READ(task, signal, live.counter) == 0)
		return 0;
	describe_process(&event, task, TRIB_EVENT_RUNNING);
	bpf_seq_write(context->meta->seq, &event, sizeof(event));
	return 0;
}

#endif
