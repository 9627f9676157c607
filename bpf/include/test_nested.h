/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_TEST_NESTED_H
#define TRIBUTARY_BPF_TEST_NESTED_H

/* For the test in which programs of different contexts interrupt each other (bpf/test_nested.bpf.h). */

#ifdef __cplusplus
#include <linux/types.h>
#endif

#define TRIB_NESTED_PAUSES 2000	/* the program reads the clock this often before it ends: tens of µs */
#define TRIB_NESTED_FIRST_BIT 3
#define TRIB_NESTED_SECOND_BIT 9

struct trib_nested_request {
	__u32 pid;	/* system calls of this process are sampled; 0: of no process */
	__u32 padding;
};

#endif
