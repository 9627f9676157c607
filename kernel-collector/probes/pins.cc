#include "kernel-collector/probes/pins.h"

#include <bpf/bpf.h>
#include <linux/magic.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {

std::optional<bpf_map_info> MapInfo(int map_fd) {
  bpf_map_info info = {};
  uint32_t size = sizeof(info);
  if (map_fd < 0 || bpf_obj_get_info_by_fd(map_fd, &info, &size) != 0) return std::nullopt;
  return info;
}

absl::Status MakePinFolder(const std::string& folder) {
  const std::string mount = std::filesystem::path(folder).parent_path();
  struct statfs status = {};
  if (statfs(mount.c_str(), &status) != 0 || status.f_type != BPF_FS_MAGIC) {
    return Error(absl::StatusCode::kFailedPrecondition, "no bpffs is mounted at " + mount);
  }
  if (mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return ErrnoStatus("mkdir", folder, errno);
  return absl::OkStatus();
}

absl::Status ReplacePin(int map_fd, const std::string& path) {
  const std::string aside = path + "_new";  // a bpffs allows no names with a dot
  if (unlink(aside.c_str()) != 0 && errno != ENOENT) return ErrnoStatus("unlink", aside, errno);
  if (bpf_obj_pin(map_fd, aside.c_str()) != 0) return ErrnoStatus("pin", aside, errno);
  if (rename(aside.c_str(), path.c_str()) != 0) return ErrnoStatus("rename", aside, errno);
  return absl::OkStatus();
}

void Unpin(uint32_t map_id, const std::string& path) {
  Fd pinned(bpf_obj_get(path.c_str()));
  auto info = MapInfo(pinned.get());
  if (info && info->id == map_id) unlink(path.c_str());
}

}  // namespace tributary
