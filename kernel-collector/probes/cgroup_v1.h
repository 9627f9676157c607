#pragma once

#include <string_view>

#include "bpf/include/config.h"

namespace tributary {

// Samples carry a cgroup id of one v1 hierarchy. This function chooses the hierarchy by its controller: the first of
// memory, pids, cpu, cpuacct, cpuset that /proc/self/cgroup shows in a v1 hierarchy ("4:memory:/docker/…"). Container
// runtimes make their folders in all of these hierarchies, so any of the hierarchies identifies a container. Returns
// TRIB_CGROUP_V1_NONE if no v1 hierarchy has one of these controllers. Source: cgroups(7).
trib_cgroup_v1 ChooseCgroupV1(std::string_view proc_self_cgroup);

// "memory", "pids", …; "" for TRIB_CGROUP_V1_NONE.
std::string_view CgroupV1Name(trib_cgroup_v1 controller);

}  // namespace tributary
