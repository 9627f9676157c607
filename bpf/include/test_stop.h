/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_STOP_H
#define TRIBUTARY_BPF_TEST_STOP_H

/*
 * For the test that compares stacks with a debugger's: a process is stopped at the instruction where it was sampled. Part of
 * the sampler's object only where that is built for this test, with TRIB_TEST_STOP.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

/* User space writes {pid, 0, 0}; the next sample of that process fills in the rest. */
struct trib_stop_request {
	__u32 pid;
	__u32 tid;
	__u64 time_ns;	/* of the sample; 0 = not yet */
};

#endif
