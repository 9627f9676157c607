#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace tributary {

// A process's cgroups, from /proc/PID/cgroup: lines "hierarchy:controllers:path" (cgroups(7)).
struct CgroupPaths {
  struct Legacy {
    std::string controllers;  // "cpu,cpuacct", "name=systemd"
    std::string path;

    friend bool operator==(const Legacy&, const Legacy&) = default;
  };

  std::string unified;         // "": none
  std::vector<Legacy> legacy;  // of v1 hierarchies, in file order
};
// Returns whether a list like "cpu,cpuacct" contains the controller, for example "cpu".
bool HasController(std::string_view controllers, std::string_view wanted);
// Returns whether one of the v1 hierarchies of `paths` has the controller.
bool HasLegacyController(const CgroupPaths& paths, std::string_view wanted);
// Parses /proc/PID/cgroup. Skips malformed lines, relative paths, and paths of more than 4,096 bytes. Returns at most
// 32 v1 hierarchies.
CgroupPaths ParseProcCgroup(std::string_view text);

}  // namespace tributary
