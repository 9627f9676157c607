#include "kernel-collector/probes/kernel_counters.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <numeric>
#include <optional>
#include <vector>

#include "base/status.h"

namespace tributary {
namespace {

std::optional<uint32_t> MapId(int map_fd) {
  bpf_map_info info = {};
  uint32_t size = sizeof(info);
  if (bpf_obj_get_info_by_fd(map_fd, &info, &size) != 0) return std::nullopt;
  return info.id;
}

}  // namespace

KernelCounters::KernelCounters(Fd map) : map_(std::move(map)), cpus_(libbpf_num_possible_cpus()) {
  TRIBUTARY_CHECK(cpus_ > 0);
}

uint64_t KernelCounters::Read(trib_counter counter) const {
  std::vector<uint64_t> by_cpu(static_cast<size_t>(cpus_));
  uint32_t key = counter;
  // An array's element below max_entries always exists.
  TRIBUTARY_CHECK(bpf_map_lookup_elem(map_.get(), &key, by_cpu.data()) == 0);
  return std::accumulate(by_cpu.begin(), by_cpu.end(), uint64_t{0});
}

KernelCounters::Values KernelCounters::ReadAll() const {
  Values all{};
  for (int i = 0; i < TRIB_COUNTER_COUNT; ++i) all[i] = Read(static_cast<trib_counter>(i));
  return all;
}

absl::Status PinnedMap::Pin(int map_fd, const std::string& path) {
  std::string folder = std::filesystem::path(path).parent_path();
  std::string mount = std::filesystem::path(folder).parent_path();
  struct statfs status = {};
  if (statfs(mount.c_str(), &status) != 0 || status.f_type != BPF_FS_MAGIC) {
    return Error(absl::StatusCode::kFailedPrecondition, "no bpffs at " + mount);
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus("mkdir", folder, errno);
  if (unlink(path.c_str()) != 0 && errno != ENOENT) return ErrnoStatus("unlink", path, errno);
  if (bpf_obj_pin(map_fd, path.c_str()) != 0) return ErrnoStatus("pin", path, errno);
  return absl::OkStatus();
}

void PinnedMap::Unpin(int map_fd, const std::string& path) {
  Fd pinned(bpf_obj_get(path.c_str()));
  if (pinned.valid() && MapId(pinned.get()) == MapId(map_fd)) unlink(path.c_str());
}

}  // namespace tributary
