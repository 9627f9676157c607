/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PROCESS_EVENTS_BPF_H
#define TRIBUTARY_BPF_PROCESS_EVENTS_BPF_H

/*
 * Reports fork, exec and exit of every process. The programs run at raw tracepoints. Unlike the perf sideband, they
 * report the exact start time, the exit code and the cgroups, and they count every lost event.
 *
 * From Linux 7.0, the scheduler may interrupt a program at a raw tracepoint. As long as the interrupted program waits,
 * the kernel skips all other runs of this program on the same CPU. So on these kernels the programs for fork, exec and
 * exit have three copies (trib_config.repeat_events), which run one directly after the other. The first copy that is
 * not skipped reports the event. It is lost only if the kernel skips all three.
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
#define TRIB_ENOENT 2	/* include/uapi/asm-generic/errno-base.h */
#define TRIB_EEXIST 17
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

/*
 * What one copy of a program has handled. The last copy removes the entry. Used only with several copies.
 * Writer and reader: the programs of this file. Bytes: about 100 for each entry. The collector sets their number before
 * loading (EndedProcessesMax). An entry stays if the kernel skips the last copy. When full, the entry that was used
 * least recently is replaced.
 */
struct trib_handled_key {
	__u64 start_time_ns;	/* of the thread */
	__u64 exec_id;		/* task_struct.self_exec_id */
	__u32 tid;
	__u32 kind;		/* enum trib_process_event_kind */
};
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 8192);
	__type(key, struct trib_handled_key);
	__type(value, __u8);
} trib_handled SEC(".maps");

/* Unlike count(): another program of this file may run on the CPU while one of them is interrupted. */
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

enum trib_copy_number { TRIB_FIRST, TRIB_SECOND, TRIB_LAST };

/* Defines the copies of a program. They pass the tracepoint's argument with this index to on_<event>. */
#define COPY_OF_PROGRAM(event, argument, suffix, copy) \
	SEC("raw_tp/sched_process_" #event) \
	int trib_process_##event##suffix(struct bpf_raw_tracepoint_args *context) \
	{ \
		return on_##event((struct task_struct *)context->args[argument], copy); \
	}
#define COPIES_OF_PROGRAM(event, argument) \
	COPY_OF_PROGRAM(event, argument, , TRIB_FIRST) \
	COPY_OF_PROGRAM(event, argument, _second, TRIB_SECOND) \
	COPY_OF_PROGRAM(event, argument, _last, TRIB_LAST)

/*
 * Returns 1 if another copy of the program handles this run of the tracepoint. It must be called in every run, also if
 * there is nothing to report: the collector subtracts TRIB_EVENTS_REPEATED from the runs of the first copy that the
 * kernel has skipped. If the map refuses the first copy's entry, the next copy handles the run. It counts the run as
 * repeated, although the kernel has skipped nothing. So the first copy subtracts it. If the map refuses a request of
 * another copy, too, the run counts as skipped.
 */
static __always_inline int is_for_other_copy(struct task_struct *task, __u32 kind, enum trib_copy_number copy)
{
	struct trib_handled_key key = {};
	__u8 one = 1;

	if (!config.repeat_events)
		return 0;
	key.start_time_ns = BPF_CORE_READ(task, start_boottime);
	key.exec_id = BPF_CORE_READ(task, self_exec_id);
	key.tid = BPF_CORE_READ(task, pid);
	key.kind = kind;
	if (copy == TRIB_FIRST) {
		if (bpf_map_update_elem(&trib_handled, &key, &one, BPF_ANY) == 0)
			return 0;
		count_event_by(TRIB_EVENTS_REPEATED, -1);
		return 1;
	}
	if (copy == TRIB_LAST ? (int)bpf_map_delete_elem(&trib_handled, &key) != -TRIB_ENOENT :
				bpf_map_update_elem(&trib_handled, &key, &one, BPF_NOEXIST) != 0)
		return 1;
	count_event(TRIB_EVENTS_REPEATED);
	return 0;
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

/* A program that was interrupted may wait for long. It runs for a few µs. */
#define EVENT_RUN_NS_MAX 50000

/*
 * Puts a record into the ring, and counts the run time of the program, which began at `began_ns`. Returns 0, or an error
 * if the ring is full. Records are not built in the ring: the reader stops at an unfinished record, and so a program
 * that is interrupted meanwhile would hold up all records behind it.
 */
static __always_inline long send(struct trib_process_event *event, __u64 began_ns)
{
	long error = bpf_ringbuf_output(&trib_events, event, sizeof(*event), events_wakeup());
	__u64 run_ns = bpf_ktime_get_ns() - began_ns;

	count_event_by(TRIB_RUN_NS, run_ns < EVENT_RUN_NS_MAX ? run_ns : EVENT_RUN_NS_MAX);
	return error;
}

/* Sends the record of an event, which is counted as captured. */
static __always_inline void send_event(struct trib_process_event *event, __u64 began_ns)
{
	count_event(TRIB_CAPTURED);
	if (send(event, began_ns))
		count_event(TRIB_LOST_RING_FULL);
}

static __always_inline void report(struct task_struct *task, __u32 kind, __u64 began_ns)
{
	struct trib_process_event event;

	describe_process(&event, task, kind);
	send_event(&event, began_ns);
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
static __always_inline int on_fork(struct task_struct *child, enum trib_copy_number copy)
{
	__u64 began_ns = bpf_ktime_get_ns();

	if (is_for_other_copy(child, TRIB_EVENT_START, copy))
		return 0;
	if (BPF_CORE_READ(child, pid) != BPF_CORE_READ(child, tgid) || BPF_CORE_READ(child, flags) & PF_KTHREAD)
		return 0;
	report(child, TRIB_EVENT_START, began_ns);
	return 0;
}

COPIES_OF_PROGRAM(fork, 1)

/* The tracepoint's first argument: the task. It now has the leader's id, whichever thread called exec. */
static __always_inline int on_exec(struct task_struct *task, enum trib_copy_number copy)
{
	__u64 began_ns = bpf_ktime_get_ns();

	if (!is_for_other_copy(task, TRIB_EVENT_EXEC, copy))
		report(task, TRIB_EVENT_EXEC, began_ns);
	return 0;
}

COPIES_OF_PROGRAM(exec, 0)

/* The tracepoint's first argument: the task. It runs for every thread. */
static __always_inline int on_exit(struct task_struct *task, enum trib_copy_number copy)
{
	struct signal_struct *signal = BPF_CORE_READ(task, signal);
	struct task_struct *leader = BPF_CORE_READ(task, group_leader);
	__u64 began_ns = bpf_ktime_get_ns();
	struct trib_process_event event;
	struct trib_exited_key key = {};
	__u8 one = 1;

	if (is_for_other_copy(task, TRIB_EVENT_EXIT, copy))
		return 0;
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
	describe_process(&event, task, TRIB_EVENT_EXIT);
	read_released_times(&event, signal);
	add_times(&event, task);
	if (leader != task)
		add_times(&event, leader);
	event.exit_status = BPF_CORE_READ(signal, flags) & SIGNAL_GROUP_EXIT ? BPF_CORE_READ(signal, group_exit_code) :
									   BPF_CORE_READ(leader, exit_code);
	if (BPF_CORE_READ(signal, oom_mm))
		event.flags |= TRIB_EVENT_OOM;
	send_event(&event, began_ns);
	return 0;
}

COPIES_OF_PROGRAM(exit, 0)

/*
 * The tracepoint's argument: a task that was released. The leader is released last: the parent waits for it, and it
 * stays until all other threads are gone. The program has only one copy: without its record, the exit waits longer, and
 * its CPU time may be a few ms too small.
 */
SEC("raw_tp/sched_process_free")
int trib_process_free(struct bpf_raw_tracepoint_args *context)
{
	struct task_struct *task = (struct task_struct *)context->args[0];
	__u64 began_ns = bpf_ktime_get_ns();
	struct trib_process_event event = {};
	struct trib_exited_key key = {};

	if (BPF_CORE_READ(task, pid) != BPF_CORE_READ(task, tgid) || BPF_CORE_READ(task, flags) & PF_KTHREAD)
		return 0;
	key.start_time_ns = BPF_CORE_READ(task, start_boottime);
	key.pid = BPF_CORE_READ(task, tgid);
	bpf_map_delete_elem(&trib_exited, &key);
	event.time_ns = bpf_ktime_get_ns();
	event.kind = TRIB_EVENT_FINAL;
	event.start_time_ns = key.start_time_ns;
	event.pid = key.pid;
	read_released_times(&event, BPF_CORE_READ(task, signal));
	send(&event, began_ns);
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
