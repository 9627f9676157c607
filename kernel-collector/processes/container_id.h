#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// The container that a cgroup path belongs to, as its runtime names it: 64 hexadecimal digits (Docker, containerd,
// CRI-O, podman, under systemd's and cgroupfs's drivers), a task's 32 digits and number (ECS), or a Garden handle. Of
// nested containers the innermost. "" = none. A runtime's own monitor (conmon) is not in the container that it
// monitors. Paths are hostile.
std::string ContainerIdFromCgroupPath(std::string_view path);

// A process's cgroups, from /proc/PID/cgroup: lines "hierarchy:controllers:path" (cgroups(7)).
struct CgroupPaths {
  std::string unified;              // "" when there is none
  std::vector<std::string> legacy;  // of v1 hierarchies, in file order
};
CgroupPaths ParseProcCgroup(std::string_view text);

}  // namespace tributary
