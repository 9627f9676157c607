/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_CONFIG_H
#define TRIBUTARY_BPF_CONFIG_H

/*
 * The settings that the collector fixes before the programs are loaded. trib_config is the only read-only variable of
 * the object, so its section (.rodata) contains exactly this struct, and user space can fill it with one copy. BPF
 * sources define the __uN types first.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

/*
 * The controller whose cgroup v1 hierarchy trib_sample.cgroup_v1_id refers to. These are our own numbers, because the
 * kernel's numbers of controllers vary by build.
 */
enum trib_cgroup_v1 {
	TRIB_CGROUP_V1_NONE = 0,
	TRIB_CGROUP_V1_MEMORY,
	TRIB_CGROUP_V1_PIDS,
	TRIB_CGROUP_V1_CPU,
	TRIB_CGROUP_V1_CPUACCT,
	TRIB_CGROUP_V1_CPUSET,
	TRIB_CGROUP_V1_COUNT,
};

struct trib_config {
	__u64 address_mask;	/* the bits of a user address; arm64 pointer authentication may sign the bits above */
	__u32 cgroup_v1;	/* enum trib_cgroup_v1 */
	__u32 sample_idle;	/* 1: ticks in the idle task are samples too */
	__u32 kernel_stack_bytes;	/* THREAD_SIZE, for kernels before 5.15 */
	__u32 padding;
};

/* The settings that the collector may change while the programs run: the only element of the map trib_control. */
struct trib_control {
	__u64 period_ns;	/* the current sampling period */
	__u64 withdrawals;	/* grows when page entries are withdrawn: rules that CPUs remembered before are void */
};

#define TRIB_CONFIG_BYTES 24
#ifdef __cplusplus
static_assert(sizeof(struct trib_config) == TRIB_CONFIG_BYTES);
#else
_Static_assert(sizeof(struct trib_config) == TRIB_CONFIG_BYTES, "trib_config");
#endif

#endif
