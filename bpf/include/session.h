/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_SESSION_H
#define TRIBUTARY_BPF_SESSION_H

/*
 * What a collector leaves for the next one beside the counters: the one element of the map trib_session, pinned as "session".
 * Only user space writes it, and no program reads it; it is a map because a map outlives a killed process, and not a file
 * because it must not outlive the machine's counters.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#include "bpf/include/sample_types.h"

#define TRIB_SESSION_VERSION 3	/* of these structs and of enum trib_counter: another one is not read */
#define TRIB_SESSION_SHARES_MAX 8	/* reducers of one collector */
#define TRIB_SESSION_ENDED_SHARES_MAX 32	/* of collectors that are gone */

/* One session: the collector's, with one reducer. All bytes 0: none. */
struct trib_session_share {
	__u8 session_id[16];
	/* Samples and losses of its batches that were acknowledged, by type. */
	__u64 attributed[TRIB_SAMPLE_TYPES_MAX];
	__u32 asked;		/* the reducer has said Welcome: what was sent then may be stored */
	__u32 padding;
};

/* Collectors that are gone, added up, of which no reducer has been told yet; by type. captured is all 0: there is none. */
struct trib_session_ended {
	__u64 captured[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_ring_full[TRIB_SAMPLE_TYPES_MAX];
	__u64 lost_stack_error[TRIB_SAMPLE_TYPES_MAX];
	__u64 idle;
	__u32 stopped;	/* all of them stopped; else one at least was killed */
	__u32 padding;
	struct trib_session_share shares[TRIB_SESSION_ENDED_SHARES_MAX];	/* the one used last first */
};

struct trib_session {
	__u32 version;
	__u32 pid;		/* of the owner, as /proc names it */
	__u64 start_ticks;	/* of the owner, field 22 of /proc/pid/stat */
	__u32 counters_id;	/* of the map of counters that this belongs to */
	__u32 stopped;		/* the owner has stopped and knows that something was not delivered */
	__u32 last_slot;	/* of shares, set last */
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
