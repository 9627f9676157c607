/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_NESTED_H
#define TRIBUTARY_BPF_TEST_NESTED_H

/* For the test of contexts (bpf/test_nested.bpf.h). */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define TRIB_NESTED_PAUSES 2000	/* clock readings between a sample's stacks and its end: tens of µs */
#define TRIB_NESTED_FIRST_BIT 3
#define TRIB_NESTED_SECOND_BIT 9

struct trib_nested_request {
	__u32 pid;	/* system calls of this process are sampled; 0: of none */
	__u32 padding;
};

#endif
