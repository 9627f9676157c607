#pragma once

#include <string_view>

#include "bpf/include/config.h"

namespace tributary {

// The cgroup v1 hierarchy that samples carry an id of: the first of memory, pids, cpu, cpuacct, cpuset that
// /proc/self/cgroup shows in a v1 hierarchy ("4:memory:/docker/…"). Container runtimes make their folders in all of
// them, so any will do; TRIB_CGROUP_V1_NONE where only v2 is mounted. Source: cgroups(7).
trib_cgroup_v1 ChooseCgroupV1(std::string_view proc_self_cgroup);

// "memory", "pids", …; "" for none.
std::string_view CgroupV1Name(trib_cgroup_v1 controller);

}  // namespace tributary
