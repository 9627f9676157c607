#include "kernel-collector/processes/cgroup_walk.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <deque>
#include <memory>

namespace tributary {
namespace {

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

}  // namespace

std::string UnifiedRoot(const std::string& cgroup_root) {
  struct stat st{};
  if (stat((cgroup_root + "/cgroup.controllers").c_str(), &st) == 0) return cgroup_root;
  return cgroup_root + "/unified";
}

std::string LegacyRoot(const std::string& cgroup_root, std::string_view controller) {
  return controller.empty() ? "" : fmt::format("{}/{}", cgroup_root, controller);
}

uint64_t CgroupIdOf(const std::string& directory) {
  struct stat st{};
  return stat(directory.c_str(), &st) == 0 ? st.st_ino : 0;
}

absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max) {
  absl::flat_hash_map<uint64_t, std::string> found;
  std::deque<std::string> pending = {"/"};
  if (uint64_t id = CgroupIdOf(root); id != 0) found.emplace(id, "/");
  while (!pending.empty() && found.size() < directories_max) {
    std::string parent = std::move(pending.front());
    pending.pop_front();
    std::unique_ptr<DIR, CloseDirectory> dir(opendir((root + parent).c_str()));
    if (dir == nullptr) continue;
    while (const dirent* entry = readdir(dir.get())) {
      std::string_view name = entry->d_name;
      if (entry->d_type != DT_DIR || name == "." || name == "..") continue;
      if (found.size() >= directories_max) break;
      std::string path = parent == "/" ? fmt::format("/{}", name) : fmt::format("{}/{}", parent, name);
      found.emplace(entry->d_ino, path);
      pending.push_back(std::move(path));
    }
  }
  return found;
}

}  // namespace tributary
