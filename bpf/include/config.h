/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_CONFIG_H
#define TRIBUTARY_BPF_CONFIG_H

/*
 * The settings that the collector sets before it loads the programs, and that then never change. The variable `config`
 * (state.bpf.h), a struct trib_config, is the only read-only variable of the object. So the section .rodata contains
 * exactly this struct, and the collector can set it with one copy. A BPF source must define the types __u8 to __u64
 * before it includes this header.
 */

#ifdef __cplusplus
#include <linux/types.h>
#endif

/*
 * A cgroup controller. trib_sample.cgroup_v1_id is an id in this controller's cgroup v1 hierarchy. These numbers are
 * not the kernel's numbers, which differ between builds.
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
	__u64 address_mask;	/* the bits of a user address; arm64 pointer authentication may use the bits above */
	__u32 cgroup_v1;	/* enum trib_cgroup_v1 */
	__u32 sample_idle;	/* 1: ticks in the idle task are samples, too */
	__u32 kernel_stack_bytes;	/* the kernel's THREAD_SIZE; used on kernels before 5.15 */
	__u32 repeat_events;	/* 1: three copies of the programs that report process events (process_events.bpf.h) */
};

/* The settings that the collector may change while the programs run: the only element of the map trib_control. */
struct trib_control {
	__u64 period_ns;	/* the current sampling period */
	__u64 withdrawals;	/* grows when page entries (unwind.h) are withdrawn: CPUs then drop cached rules */
};

#define TRIB_CONFIG_BYTES 24
#ifdef __cplusplus
static_assert(sizeof(struct trib_config) == TRIB_CONFIG_BYTES);
#else
_Static_assert(sizeof(struct trib_config) == TRIB_CONFIG_BYTES, "trib_config");
#endif

#endif
