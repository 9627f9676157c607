/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_COMPAT_H
#define TRIBUTARY_BPF_COMPAT_H

/*
 * Differences between kernel versions. Each number is the version that introduced the feature. The oldest supported
 * version is 5.10. So the programs use these features without a check:
 *   5.5   BPF_F_MMAPABLE; task_struct.start_boottime (was real_start_time); kernfs_node.id is a plain u64
 *   5.5   bpf_probe_read_kernel, bpf_probe_read_user
 *   5.8   BPF_MAP_TYPE_RINGBUF; CAP_BPF and CAP_PERFMON
 *   5.7   task_struct.self_exec_id is a u64
 * Features that the programs do not require, because the kernel got them later:
 *   5.11  bpf_get_current_task_btf: used only for bpf_task_pt_regs; for all other fields of the task, programs use
 *         bpf_get_current_task and read the fields
 *   5.11  the verifier keeps the bounds of a value that is stored on the stack: see CLAMP
 *   5.15  bpf_task_pt_regs: used only if the kernel has it (registers.bpf.h)
 *   5.15  bpf links of perf events: the collector uses PERF_EVENT_IOC_SET_BPF
 *   5.17  bpf_loop: programs use loops with a constant limit of steps
 */

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#include "bpf/include/config.h"
#include "bpf/include/kernel_types.h"

/*
 * Limits `value` to `max`, even where the compiler knows that `value` is not larger and would remove the check.
 * Verifiers before 5.11 need the check, because they lose the bound of a value that is stored on the stack.
 */
#define CLAMP(value, max) \
	do { \
		barrier_var(value); \
		if ((value) > (max)) \
			(value) = (max); \
	} while (0)

/*
 * The kernel's number of a cgroup controller, or -1 if this kernel was built without the controller. The numbers depend
 * on the kernel's configuration, so they are looked up by name. `controller` is a constant when the program is loaded,
 * so the verifier removes all cases of the switch below except one.
 */
#define TRIB_SUBSYS(name) \
	(bpf_core_enum_value_exists(enum cgroup_subsys_id, name) ? \
	 (int)bpf_core_enum_value(enum cgroup_subsys_id, name) : -1)

static __always_inline int trib_cgroup_v1_index(__u32 controller)
{
	switch (controller) {
	case TRIB_CGROUP_V1_MEMORY:
		return TRIB_SUBSYS(memory_cgrp_id);
	case TRIB_CGROUP_V1_PIDS:
		return TRIB_SUBSYS(pids_cgrp_id);
	case TRIB_CGROUP_V1_CPU:
		return TRIB_SUBSYS(cpu_cgrp_id);
	case TRIB_CGROUP_V1_CPUACCT:
		return TRIB_SUBSYS(cpuacct_cgrp_id);
	case TRIB_CGROUP_V1_CPUSET:
		return TRIB_SUBSYS(cpuset_cgrp_id);
	default:
		return -1;
	}
}

#endif
