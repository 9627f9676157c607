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
// What is no such line, and what has a relative path, is left out. Hostile: 32 v1 hierarchies at most, 4,096 bytes a
// path.
CgroupPaths ParseProcCgroup(std::string_view text);

}  // namespace tributary
