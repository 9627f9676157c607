#pragma once

#include <string_view>

#include "bpf/include/config.h"

namespace tributary {

// Chooses the cgroup v1 hierarchy whose id samples carry: the first of memory, pids, cpu, cpuacct, cpuset that
// /proc/self/cgroup shows in a v1 hierarchy ("4:memory:/docker/…"). Container runtimes make their folders in all of
// these hierarchies, so any of them will do. Returns TRIB_CGROUP_V1_NONE where only v2 is mounted. Source: cgroups(7).
trib_cgroup_v1 ChooseCgroupV1(std::string_view proc_self_cgroup);

// "memory", "pids", …; "" for TRIB_CGROUP_V1_NONE.
std::string_view CgroupV1Name(trib_cgroup_v1 controller);

}  // namespace tributary
