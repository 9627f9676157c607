/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SESSION_H
#define TRIBUTARY_BPF_SESSION_H

/*
 * The state that a collector leaves for the next collector, in addition to the counters. It is the only element of the
 * map trib_session, which is pinned as "session". Only the collector writes the element, and no BPF program reads it.
 * It is in a map because a map survives a killed process. It is not in a file because it must not survive a reboot: the
 * counters do not survive a reboot either.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/sample_types.h"

#define TRIB_SESSION_VERSION 3	/* of these structs and of enum trib_counter; the collector ignores other versions */
#define TRIB_SESSION_SHARES_MAX 8	/* limit of sessions of one collector: one for each reducer */
#define TRIB_SESSION_ENDED_SHARES_MAX 32	/* limit of sessions of earlier collectors */

/* One session of the collector with one reducer. If all bytes are 0, there is no session. */
struct trib_session_share {
	__u8 session_id[16];
	/* Samples and losses in the acknowledged batches of this session, by sample type. */
	__u64 attributed[TRIB_SAMPLE_TYPES_MAX];
	__u32 asked;		/* 1: batches may have been sent in this session, so the reducer may have stored them */
	__u32 padding;
};

/*
 * The sums over those earlier collectors that were not reported to any reducer yet, by sample type. After the report,
 * `captured` contains only the samples and losses of the earlier collectors that this collector's sessions have
 * reported as their own. If all numbers in `captured` are 0, there is nothing to report.
 */
struct trib_session_ended {
	__u64 captured[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_ring_full[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_stack_error[TRIB_SAMPLE_TYPES_MAX];
	__u64 idle;
	__u32 stopped;	/* 1: all these collectors were stopped; 0: at least one was killed */
	__u32 padding;
	struct trib_session_share shares[TRIB_SESSION_ENDED_SHARES_MAX];	/* most recently used first */
};

struct trib_session {
	__u32 version;
	__u32 pid;		/* of the collector that wrote this, as in /proc */
	__u64 start_ticks;	/* start time of this collector, field 22 of /proc/PID/stat */
	__u32 counters_id;	/* id of this collector's map trib_counters */
	__u32 stopped;		/* 1: this collector was stopped, but samples or `ended` are not yet delivered */
	__u32 last_slot;	/* index of the element of `shares` that was set last */
	__u32 padding;
	struct trib_session_share shares[TRIB_SESSION_SHARES_MAX];
	struct trib_session_ended ended;
};

/*
 * The running processes that the collector follows: a hash map, which is pinned as "processes". Only the collector
 * writes it, and only the next collector reads it. A collector of another release ignores the map if one of the sizes
 * differs.
 */
#define TRIB_LIVE_PROCESSES_MAX 65536
struct trib_live_key {
	__u64 start_time_ns;	/* of the thread group leader, CLOCK_BOOTTIME */
	__u32 pid;
	__u32 padding;
};
struct trib_live_process {
	__u32 parent;
	__u32 uid;
	char comm[16];		/* texts that fill their array have no terminating zero */
	char container_id[64];
	char path[128];		/* of the executable; the end of a longer path */
};

#define TRIB_SESSION_BYTES 3760
#ifdef __cplusplus
static_assert(sizeof(struct trib_session) == TRIB_SESSION_BYTES);
#else
_Static_assert(sizeof(struct trib_session) == TRIB_SESSION_BYTES, "trib_session");
#endif

#endif
