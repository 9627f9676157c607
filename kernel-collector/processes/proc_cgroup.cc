#include "kernel-collector/processes/proc_cgroup.h"

#include <algorithm>

namespace tributary {
namespace {

constexpr size_t kPathBytesMax = 4096;
constexpr size_t kHierarchiesMax = 32;

}  // namespace

bool HasController(std::string_view controllers, std::string_view wanted) {
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    if (one == wanted) return true;
    controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
  }
  return false;
}

bool HasLegacyController(const CgroupPaths& paths, std::string_view wanted) {
  return std::any_of(paths.legacy.begin(), paths.legacy.end(), [&](const CgroupPaths::Legacy& hierarchy) {
    return HasController(hierarchy.controllers, wanted);
  });
}

CgroupPaths ParseProcCgroup(std::string_view text) {
  CgroupPaths paths;
  while (!text.empty()) {
    size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    size_t first = line.find(':');
    size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    std::string_view controllers = line.substr(first + 1, second - first - 1);
    std::string_view path = line.substr(second + 1);
    if (path.empty() || path.front() != '/' || path.size() > kPathBytesMax) continue;
    if (line.substr(0, first) == "0" && controllers.empty()) {
      paths.unified = path;
    } else if (paths.legacy.size() < kHierarchiesMax) {
      paths.legacy.push_back({std::string(controllers), std::string(path)});
    }
  }
  return paths;
}

}  // namespace tributary
