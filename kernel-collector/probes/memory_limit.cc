#include "kernel-collector/probes/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr uint64_t kMiB = 1u << 20;
// Measured on a machine with 2 CPUs: with 38 MiB, the kernel killed the collector within seconds. With 48 MiB it ran.
constexpr uint64_t kLeastBytes = 47 * kMiB;
constexpr uint64_t kLeastBytesPerCpu = kMiB / 2;
constexpr uint64_t kRingBytesPerCpu = 64u << 10;       // the part of kLeastBytesPerCpu for the ring of samples
constexpr uint64_t kNoLimitBytes = uint64_t{1} << 62;  // cgroup v1 writes a huge number if there is no limit
constexpr size_t kPathBytesMax = 4'096;

// Returns the number in a file of one line. nullopt: there is no such file, or it contains no number ("max").
std::optional<uint64_t> NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  return ParseNumber<uint64_t>(line);
}

// One hierarchy of cgroups with limits: where it is mounted, and this process's path in it.
struct Hierarchy {
  std::string root;
  std::string path;
  const char* file;
};

std::optional<Hierarchy> FindHierarchy(std::string_view proc_cgroup, const std::string& cgroup_root) {
  std::optional<Hierarchy> found;
  while (!proc_cgroup.empty()) {
    const std::string_view line = proc_cgroup.substr(0, proc_cgroup.find('\n'));
    proc_cgroup.remove_prefix(std::min(proc_cgroup.size(), line.size() + 1));
    const size_t controllers = line.find(':');
    const size_t path = line.find(':', controllers == line.npos ? line.npos : controllers + 1);
    if (path == line.npos || line.size() > kPathBytesMax) continue;
    const std::string list = fmt::format(",{},", line.substr(controllers + 1, path - controllers - 1));
    if (list.find(",memory,") != list.npos) {
      return Hierarchy{cgroup_root + "/memory", std::string(line.substr(path + 1)), "memory.limit_in_bytes"};
    }
    if (list == ",,") found = Hierarchy{cgroup_root, std::string(line.substr(path + 1)), "memory.max"};
  }
  return found;
}

}  // namespace

std::optional<uint64_t> MemoryLimit(std::string_view proc_cgroup, const std::string& cgroup_root) {
  std::optional<Hierarchy> in = FindHierarchy(proc_cgroup, cgroup_root);
  if (!in) return std::nullopt;
  if (in->path.find("..") != in->path.npos) in->path.clear();  // outside of this process's cgroup namespace
  std::optional<uint64_t> smallest;
  while (true) {
    const std::optional<uint64_t> limit = NumberIn(fmt::format("{}{}/{}", in->root, in->path, in->file));
    if (limit && *limit < kNoLimitBytes) smallest = std::min(smallest.value_or(*limit), *limit);
    const size_t parent = in->path.rfind('/');
    if (parent == in->path.npos) return smallest;
    in->path.resize(parent);
  }
}

uint64_t LeastMemoryBytes(size_t cpus, uint64_t ring_bytes) {
  return kLeastBytes + cpus * kLeastBytesPerCpu + ring_bytes - std::min(ring_bytes, cpus * kRingBytesPerCpu);
}

absl::Status CheckMemoryLimit(std::optional<uint64_t> limit_bytes, size_t cpus, uint64_t ring_bytes) {
  const uint64_t least = LeastMemoryBytes(cpus, ring_bytes);
  if (!limit_bytes || *limit_bytes >= least) return absl::OkStatus();
  return Error(
      absl::StatusCode::kResourceExhausted,
      fmt::format("the memory limit is {} MiB, but with {} CPUs kernel-collector needs at least {} MiB: raise the "
                  "limit (Kubernetes: resources.limits.memory, docker: --memory, systemd: MemoryMax)",
                  *limit_bytes / kMiB, cpus, (least + kMiB - 1) / kMiB));
}

}  // namespace tributary
