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
// Returns whether a v1 hierarchy has the controller.
bool HasLegacyController(const CgroupPaths& paths, std::string_view wanted);
// Skips malformed lines and lines with a relative path. The text is hostile: at most 32 v1 hierarchies are kept, and
// paths above 4,096 bytes are skipped.
CgroupPaths ParseProcCgroup(std::string_view text);

}  // namespace tributary
