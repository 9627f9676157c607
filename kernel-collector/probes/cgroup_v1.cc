#include "kernel-collector/probes/cgroup_v1.h"

#include <algorithm>

namespace tributary {
namespace {

// Cuts `text` at the first `separator`. Returns the part before it and leaves the part after it in `text`.
std::string_view Next(std::string_view* text, char separator) {
  std::string_view part = text->substr(0, text->find(separator));
  text->remove_prefix(std::min(text->size(), part.size() + 1));
  return part;
}

}  // namespace

std::string_view CgroupV1Name(trib_cgroup_v1 controller) {
  switch (controller) {
    case TRIB_CGROUP_V1_MEMORY:
      return "memory";
    case TRIB_CGROUP_V1_PIDS:
      return "pids";
    case TRIB_CGROUP_V1_CPU:
      return "cpu";
    case TRIB_CGROUP_V1_CPUACCT:
      return "cpuacct";
    case TRIB_CGROUP_V1_CPUSET:
      return "cpuset";
    case TRIB_CGROUP_V1_NONE:
    case TRIB_CGROUP_V1_COUNT:
      break;
  }
  return "";
}

trib_cgroup_v1 ChooseCgroupV1(std::string_view proc_self_cgroup) {
  int best = TRIB_CGROUP_V1_COUNT;
  while (!proc_self_cgroup.empty()) {
    std::string_view line = Next(&proc_self_cgroup, '\n');
    std::string_view hierarchy = Next(&line, ':');
    std::string_view controllers = Next(&line, ':');
    if (hierarchy == "0") continue;  // the unified hierarchy
    while (!controllers.empty()) {
      std::string_view name = Next(&controllers, ',');
      for (int i = TRIB_CGROUP_V1_NONE + 1; i < best; ++i) {
        if (name == CgroupV1Name(static_cast<trib_cgroup_v1>(i))) best = i;
      }
    }
  }
  return best == TRIB_CGROUP_V1_COUNT ? TRIB_CGROUP_V1_NONE : static_cast<trib_cgroup_v1>(best);
}

}  // namespace tributary
