/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SESSION_H
#define TRIBUTARY_BPF_SESSION_H

/*
 * The state that a collector leaves for the next collector, in addition to the counters: the only element of the map
 * trib_session, pinned as "session". Only user space writes the element, and no BPF program reads it. The session is
 * kept in a map because a map outlives a killed process. The session is not kept in a file because it must not outlive
 * the machine's counters.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/sample_types.h"

#define TRIB_SESSION_VERSION 3	/* of these structs and of enum trib_counter; other versions are not read */
#define TRIB_SESSION_SHARES_MAX 8	/* sessions of one collector: one for each reducer */
#define TRIB_SESSION_ENDED_SHARES_MAX 32	/* sessions of earlier collectors */

/* One session of the collector with one reducer. All bytes 0: no session. */
struct trib_session_share {
	__u8 session_id[16];
	/* Samples and losses in this session's acknowledged batches, by type. */
	__u64 attributed[TRIB_SAMPLE_TYPES_MAX];
	__u32 asked;		/* 1: the reducer has sent Welcome, so batches sent since then may be stored */
	__u32 padding;
};

/*
 * The sums, by type, over earlier collectors that were not yet reported to any reducer. If captured is all 0, there are
 * no such collectors.
 */
struct trib_session_ended {
	__u64 captured[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_ring_full[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_stack_error[TRIB_SAMPLE_TYPES_MAX];
	__u64 idle;
	__u32 stopped;	/* 1: all of these collectors stopped; 0: at least one was killed */
	__u32 padding;
	struct trib_session_share shares[TRIB_SESSION_ENDED_SHARES_MAX];	/* the most recently used first */
};

struct trib_session {
	__u32 version;
	__u32 pid;		/* of the owner, in the numbering of /proc */
	__u64 start_ticks;	/* of the owner, field 22 of /proc/pid/stat */
	__u32 counters_id;	/* id of the counters map that belongs to this session */
	__u32 stopped;		/* 1: the owner has stopped, and some of its samples were not delivered */
	__u32 last_slot;	/* index of the share that was set last */
	__u32 padding;
	struct trib_session_share shares[TRIB_SESSION_SHARES_MAX];
	struct trib_session_ended ended;
};

#define TRIB_SESSION_BYTES 3760
#ifdef __cplusplus
static_assert(sizeof(struct trib_session) == TRIB_SESSION_BYTES);
#else
_Static_assert(sizeof(struct trib_session) == TRIB_SESSION_BYTES, "trib_session");
#endif

#endif
