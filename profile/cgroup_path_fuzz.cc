#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "profile/cgroup_path.h"

// The input is a cgroup's path. Processes in the cgroup may have chosen it.

namespace {

void Require(bool holds) {
  if (!holds) abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view path(reinterpret_cast<const char*>(data), size);
  const tributary::CgroupPath parsed = tributary::ParseCgroupPath(path);
  Require(path.find(parsed.container_id) != std::string_view::npos);
  Require(parsed.container_id.size() <= 64);
  Require(parsed.pod_uid.empty() || parsed.pod_uid.size() == 32 || parsed.pod_uid.size() == 36);
  Require(parsed.pod_uid.find_first_not_of("0123456789abcdef-") == std::string::npos);
  Require(path.find(parsed.systemd_unit) != std::string_view::npos);
  Require(parsed.systemd_unit.find('/') == std::string::npos);
  Require(parsed.container_id.empty() || parsed.systemd_unit.empty());
  Require(!parsed.container_id.empty() || parsed.runtime.empty());
#ifdef TRIBUTARY_PLANT_CRASH
  // Only a path with a complete pod and a complete container reaches this.
  Require(parsed.runtime != "cri-o" || !parsed.pod_uid.starts_with('7'));
#endif
  return 0;
}
