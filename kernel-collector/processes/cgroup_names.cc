#include "kernel-collector/processes/cgroup_names.h"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <deque>

#include "kernel-collector/processes/proc_cgroup.h"
#include "kernel-collector/processes/proc_files.h"
#include "profile/cgroup_path.h"

namespace tributary {
namespace {

struct CloseDirectory {
  void operator()(DIR* dir) const { closedir(dir); }
};

constexpr int64_t kWalkPeriodNs = 5 * kNsPerSecond;

bool Exists(const std::string& path) {
  struct stat st{};
  return stat(path.c_str(), &st) == 0;
}

// The inode number of a cgroup's directory, 0 when it is gone.
uint64_t InodeOf(const std::string& path) {
  struct stat st{};
  return stat(path.c_str(), &st) == 0 ? st.st_ino : 0;
}

// Where the unified hierarchy is mounted: at the top, or beside those of v1.
std::string UnifiedRoot(const std::string& cgroup_root) {
  if (Exists(cgroup_root + "/cgroup.controllers")) return cgroup_root;
  return cgroup_root + "/unified";
}

}  // namespace

absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max) {
  absl::flat_hash_map<uint64_t, std::string> found;
  std::deque<std::string> pending = {"/"};
  if (uint64_t inode = InodeOf(root); inode != 0) found.emplace(inode, "/");
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

struct CgroupNames::Lookup {
  Key key;
  Pid pid;
  std::string proc_root, cgroup_root;
  bool may_walk = false;

  CgroupName name;
  bool walked = false;
  absl::flat_hash_map<uint64_t, std::string> unified;  // what a walk found on its way
};

CgroupNames::CgroupNames(std::string proc_root, std::string cgroup_root, Executor& executor, const Clock& clock,
                         Metrics& metrics)
    : proc_root_(std::move(proc_root)),
      cgroup_root_(std::move(cgroup_root)),
      executor_(executor),
      clock_(clock),
      unknown_(
          metrics.AddCounter("tributary_collector_cgroups_unknown_total", "cgroup ids that no path was found for")) {}

const CgroupName* CgroupNames::Find(Key key, Pid pid) {
  static const CgroupName kNoName;
  if (key.v2_id == 0 && key.v1_id == 0) return &kNoName;
  if (auto it = names_.find(key); it != names_.end()) return &it->second;
  if (pending_.contains(key)) return nullptr;
  auto lookup = std::make_shared<Lookup>();
  lookup->key = key;
  lookup->pid = pid;
  lookup->proc_root = proc_root_;
  lookup->cgroup_root = cgroup_root_;
  MonotonicNs now = clock_.Monotonic();
  lookup->may_walk = !walked_ || now.value - last_walk_.value >= kWalkPeriodNs;
  std::weak_ptr<bool> alive = alive_;
  bool taken = executor_.Submit([lookup] { Read(*lookup); },
                                [this, lookup, alive] {
                                  if (!alive.expired()) Finish(*lookup);
                                });
  if (taken) pending_.emplace(key, true);
  return nullptr;
}

void CgroupNames::Read(Lookup& lookup) {
  CgroupPaths paths;
  auto text = ReadSmallFile(fmt::format("{}/{}/cgroup", lookup.proc_root, lookup.pid.value), 64u << 10);
  if (text.ok()) paths = ParseProcCgroup(*text);
  std::string root = UnifiedRoot(lookup.cgroup_root);
  // The process may have moved, or its pid may be another's by now: the id decides where it can.
  uint64_t inode = paths.unified.empty() ? 0 : InodeOf(root + paths.unified);
  bool mismatch = inode != 0 && lookup.key.v2_id != 0 && inode != lookup.key.v2_id;
  if (lookup.key.v2_id != 0 && (mismatch || !text.ok())) {
    paths = CgroupPaths();
    if (lookup.may_walk) {
      lookup.walked = true;
      lookup.unified = WalkCgroups(root, kDirectoriesMax);
      auto it = lookup.unified.find(lookup.key.v2_id);
      if (it != lookup.unified.end()) paths.unified = it->second;
    }
  }
  lookup.name.path = paths.unified;
  lookup.name.container_id = ParseCgroupPath(paths.unified).container_id;
  if (!lookup.name.container_id.empty() || lookup.key.v1_id == 0) return;
  // Under v1 containers live in its hierarchies, and the unified one often knows only "/".
  for (const auto& [controllers, path] : paths.legacy) {
    std::string id = ParseCgroupPath(path).container_id;
    if (!id.empty() || lookup.name.path.size() <= 1) lookup.name.path = path;
    if (!id.empty()) {
      lookup.name.container_id = std::move(id);
      return;
    }
  }
}

void CgroupNames::Finish(const Lookup& lookup) {
  pending_.erase(lookup.key);
  if (names_.size() + lookup.unified.size() >= kNamesMax) names_.clear();
  if (lookup.walked) {
    walked_ = true;
    last_walk_ = clock_.Monotonic();
    if (lookup.key.v1_id == 0) {
      for (const auto& [id, path] : lookup.unified) {
        if (names_.size() >= kNamesMax) break;
        names_.try_emplace(Key{id, 0}, CgroupName{path, ParseCgroupPath(path).container_id});
      }
    }
  }
  if (lookup.name.path.empty()) unknown_.Add();
  // An empty name is remembered too: a cgroup that is gone does not come back.
  names_.insert_or_assign(lookup.key, lookup.name);
}

}  // namespace tributary
