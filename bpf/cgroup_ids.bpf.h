/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
#ifndef TRIBUTARY_BPF_CGROUP_IDS_BPF_H
#define TRIBUTARY_BPF_CGROUP_IDS_BPF_H

/* The ids of a task's cgroups, as the records contain them. */

#include <bpf/bpf_core_read.h>

#include "bpf/state.bpf.h"

static __always_inline __u64 cgroup_v2_id(struct css_set *cgroups)
{
	return BPF_CORE_READ(cgroups, dfl_cgrp, kn, id);
}

static __always_inline __u64 cgroup_v1_id(struct css_set *cgroups)
{
	struct cgroup_subsys_state *state = NULL;
	int index = trib_cgroup_v1_index(config.cgroup_v1);
	void *slots;

	if (index < 0)
		return 0;
	slots = __builtin_preserve_access_index(&cgroups->subsys[0]);
	if (bpf_probe_read_kernel(&state, sizeof(state), slots + index * sizeof(state)))
		return 0;
	return BPF_CORE_READ(state, cgroup, kn, id);
}

#endif
