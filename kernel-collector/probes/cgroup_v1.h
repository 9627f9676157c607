#pragma once

#include <string_view>

#include "bpf/include/config.h"

namespace tributary {

// Chooses one v1 hierarchy. Each sample contains the id of its task's cgroup in this hierarchy. Returns the first of
// the controllers memory, pids, cpu, cpuacct, cpuset that has a v1 hierarchy in /proc/self/cgroup
// ("4:memory:/docker/…"). Container runtimes create a cgroup for each container in all of these hierarchies, so any of
// the hierarchies identifies a container. Returns TRIB_CGROUP_V1_NONE if no v1 hierarchy has one of these controllers.
// Source: cgroups(7).
trib_cgroup_v1 ChooseCgroupV1(std::string_view proc_self_cgroup);

// Returns the name of the controller, such as "memory"; "" for TRIB_CGROUP_V1_NONE.
std::string_view CgroupV1Name(trib_cgroup_v1 controller);

}  // namespace tributary
