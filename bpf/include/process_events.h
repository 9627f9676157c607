/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_PROCESS_EVENTS_H
#define TRIBUTARY_BPF_PROCESS_EVENTS_H

/*
 * The records of the ring trib_events: what happens to processes. A BPF source must define the types __u8 to __u64
 * before it includes this header.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/records.h"

enum trib_process_event_kind {
	TRIB_EVENT_START = 1,	/* a process was forked; threads are not reported */
	TRIB_EVENT_EXEC,	/* it began to run another program */
	TRIB_EVENT_EXIT,	/* its last thread ended; written once for each process */
	/*
	 * The kernel releases the process, after its parent has waited for it. The record is not an event, but completes
	 * the exit: only now the CPU time is final. A process for which its parent never waits has no such record.
	 */
	TRIB_EVENT_FINAL,
	TRIB_EVENT_RUNNING,	/* the process runs: from the list of processes (trib_list_processes), not in the ring */
};

enum trib_process_event_flags {
	TRIB_EVENT_OOM = 1,	/* the OOM killer chose the process */
};

/*
 * One event. user_ns, system_ns, runtime_ns and peak_rss_pages are set in EXIT and FINAL. exit_status and flags are set
 * in EXIT. FINAL has no cgroups, parent, uid and comm. The CPU times are those of all threads together. The kernel
 * counts user_ns and system_ns by ticks or by time, depending on its configuration, and runtime_ns by time.
 */
struct trib_process_event {
	__u64 time_ns;
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME: with the pid, identifies the process */
	__u64 cgroup_v2_id;	/* as in trib_sample */
	__u64 cgroup_v1_id;
	__u64 user_ns;
	__u64 system_ns;
	__u64 runtime_ns;	/* what getrusage and wait4 report as the sum of user and system time */
	__u64 peak_rss_pages;	/* ru_maxrss, in pages */
	__u32 kind;		/* enum trib_process_event_kind */
	__u32 pid;		/* thread group id, initial namespace */
	__u32 parent;
	__u32 uid;		/* effective, initial namespace */
	__u32 exit_status;	/* as wait(2) returns it: bits 0 to 6 the signal, bit 7 a core dump, bits 8 to 15 the exit code */
	__u32 flags;		/* enum trib_process_event_flags */
	char comm[TRIB_COMM_BYTES];	/* of the thread group leader */
};

#define TRIB_PROCESS_EVENT_BYTES 104
#ifdef __cplusplus
static_assert(sizeof(struct trib_process_event) == TRIB_PROCESS_EVENT_BYTES);
#else
_Static_assert(sizeof(struct trib_process_event) == TRIB_PROCESS_EVENT_BYTES, "trib_process_event");
#endif

/*
 * Process events are counted in the slots of the type TRIB_TYPE_PROCESS_EVENT in the context TICK. They share the
 * context's slots, not its state, so that a node without programs in other contexts needs no further slots. The
 * counters are TRIB_CAPTURED, TRIB_LOST_RING_FULL and TRIB_RUN_NS. TRIB_IDLE has another meaning here: the number of
 * events that the collector itself made, such as those of processes that already ran. Only the collector writes it. And
 * TRIB_COPIES has another meaning: the runs in which another copy of a program replaced the first one.
 */
#define TRIB_EVENTS_MADE TRIB_IDLE
#define TRIB_EVENTS_REPEATED TRIB_COPIES

#endif
