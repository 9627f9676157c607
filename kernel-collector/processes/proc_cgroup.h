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

  std::string unified;         // "" when there is none
  std::vector<Legacy> legacy;  // of v1 hierarchies, in file order
};
// Whether "cpu,cpuacct" has "cpu".
bool HasController(std::string_view controllers, std::string_view wanted);
// Whether a v1 hierarchy has the controller.
bool HasLegacyController(const CgroupPaths& paths, std::string_view wanted);
// What is no such line, and what has a relative path, is left out. Hostile: 32 v1 hierarchies at most, 4,096 bytes a
// path.
CgroupPaths ParseProcCgroup(std::string_view text);

}  // namespace tributary
