/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_STOP_H
#define TRIBUTARY_BPF_TEST_STOP_H

/*
 * For the test that compares our stacks with the stacks of a debugger: the process is stopped at the instruction at
 * which it was sampled. The sampler includes this header only in the build for this test, with TRIB_TEST_STOP.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

/* The test writes {pid, 0, 0}. At the next sample of that process, the BPF program sets the other fields. */
struct trib_stop_request {
	__u32 pid;
	__u32 tid;
	__u64 time_ns;	/* time of the sample; 0: not sampled yet */
};

#endif
