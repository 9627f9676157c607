#include "kernel-collector/processes/cgroup_names.h"

#include <fmt/format.h>

#include <algorithm>

#include "kernel-collector/processes/cgroup_walk.h"
#include "kernel-collector/processes/proc_cgroup.h"
#include "kernel-collector/processes/proc_files.h"
#include "profile/cgroup_path.h"

namespace tributary {
namespace {

constexpr size_t kProcCgroupBytesMax = 64u << 10;

// With v1, containers are in the v1 hierarchies, and the unified hierarchy often shows only "/".
CgroupName NameOf(const std::string& unified, const std::vector<std::string>& legacy) {
  CgroupName name{unified, ParseCgroupPath(unified).container_id};
  if (!name.container_id.empty()) return name;
  for (const std::string& path : legacy) {
    std::string id = ParseCgroupPath(path).container_id;
    if (!id.empty()) return {path, std::move(id)};
    if (name.path.size() <= 1) name.path = path;
  }
  return name;
}

// Returns whether a path from /proc may belong to the cgroup id of a sample. A path that does not exist may belong to
// it: cgroups are removed with their last process, and paths from another cgroup namespace lead elsewhere.
bool MayBe(uint64_t id, const std::string& root, const std::string& path) {
  if (id == 0 || root.empty() || path.empty()) return true;
  const uint64_t path_id = CgroupIdOf(root + path);
  return path_id == 0 || path_id == id;
}

template <typename Map>
void Merge(Map& from, size_t max, Map* into) {
  if (into->size() + from.size() > max) into->clear();
  for (auto& [id, path] : from) into->insert_or_assign(id, std::move(path));
}

}  // namespace

struct CgroupNames::Reading {
  Key key;
  Pid pid;
  Options options;

  bool found = false;
  CgroupName name;
};

struct CgroupNames::Walk {
  Options options;
  bool wants_unified = false, wants_legacy = false;
  std::vector<Key> wanted;

  Paths unified, legacy;
  int64_t took_ns = 0;
};

CgroupNames::CgroupNames(Options options, Executor& executor, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      executor_(executor),
      clock_(clock),
      unknown_(metrics.AddCounter("tributary_collector_cgroups_unknown_total",
                                  "Cgroup ids of processes for which no cgroup path was found")),
      walks_(metrics.AddCounter(
          "tributary_collector_cgroup_walks_total",
          "How often the cgroup hierarchies were listed to find the cgroups of processes that had ended")) {}

const CgroupName* CgroupNames::Find(Key key, Pid pid) {
  static const CgroupName kNoName;
  if (key.v2_id == 0 && key.v1_id == 0) return &kNoName;
  if (auto it = names_.find(key); it != names_.end()) return &it->second;
  if (reading_.contains(key)) return nullptr;
  if (unread_.contains(key)) {
    StartWalk();
    return nullptr;
  }
  auto reading = std::make_shared<Reading>();
  reading->key = key;
  reading->pid = pid;
  reading->options = options_;
  bool taken =
      executor_.Submit([reading] { Read(*reading); }, scope_.Wrap([this, reading] { FinishReading(*reading); }));
  if (taken) reading_.insert(key);
  return nullptr;
}

void CgroupNames::OnMade(uint64_t id, std::string_view path) {
  if (!options_.takes_events) return;
  if (unified_.size() >= kDirectoriesMax) unified_.clear();  // a walk finds the existing cgroups again
  unified_.insert_or_assign(id, path);
}

void CgroupNames::Read(Reading& reading) {
  const Options& options = reading.options;
  auto text = ReadSmallFile(fmt::format("{}/{}/cgroup", options.proc_root, reading.pid.value), kProcCgroupBytesMax);
  if (!text.ok()) return;
  const CgroupPaths paths = ParseProcCgroup(*text);
  // The process may have moved, or its pid may now belong to another process. The ids decide if they can be compared.
  if (!MayBe(reading.key.v2_id, UnifiedRoot(options.cgroup_root), paths.unified)) return;
  std::vector<std::string> legacy;
  for (const CgroupPaths::Legacy& hierarchy : paths.legacy) {
    const bool ours = HasController(hierarchy.controllers, options.cgroup_v1);
    if (ours && !MayBe(reading.key.v1_id, LegacyRoot(options.cgroup_root, options.cgroup_v1), hierarchy.path)) return;
    if (reading.key.v1_id != 0) legacy.insert(ours ? legacy.begin() : legacy.end(), hierarchy.path);
  }
  reading.name = NameOf(paths.unified, legacy);
  reading.found = !reading.name.path.empty();
}

void CgroupNames::FinishReading(const Reading& reading) {
  reading_.erase(reading.key);
  if (reading.found) return Remember(reading.key, reading.name);
  if (CgroupName name; NameByWalks(reading.key, &name)) return Remember(reading.key, std::move(name));
  if (unread_.size() >= kNamesMax) unread_.clear();
  unread_.insert(reading.key);
  StartWalk();
}

bool CgroupNames::MayWalk() const { return !walking_ && clock_.Monotonic() >= next_walk_; }

void CgroupNames::StartWalk() {
  if (!MayWalk()) return;
  auto walk = std::make_shared<Walk>();
  walk->options = options_;
  walk->wanted.assign(unread_.begin(), unread_.end());
  for (const Key& key : walk->wanted) {
    walk->wants_unified |= key.v2_id != 0 && !unified_.contains(key.v2_id);
    walk->wants_legacy |= key.v1_id != 0 && !legacy_.contains(key.v1_id);
  }
  walking_ = executor_.Submit(
      [walk, &clock = clock_] {
        const MonotonicNs began = clock.Monotonic();
        const Options& options = walk->options;
        if (walk->wants_unified) walk->unified = WalkCgroups(UnifiedRoot(options.cgroup_root), kDirectoriesMax);
        const std::string legacy = LegacyRoot(options.cgroup_root, options.cgroup_v1);
        if (walk->wants_legacy && !legacy.empty()) walk->legacy = WalkCgroups(legacy, kDirectoriesMax);
        walk->took_ns = clock.Monotonic().value - began.value;
      },
      scope_.Wrap([this, walk] { FinishWalk(*walk); }));
}

void CgroupNames::FinishWalk(Walk& walk) {
  walking_ = false;
  walks_.Add();
  next_walk_ = MonotonicNs{clock_.Monotonic().value + std::max(kWalkPeriodMinNs, kWalkShare * walk.took_ns)};
  Merge(walk.unified, kDirectoriesMax, &unified_);
  Merge(walk.legacy, kDirectoriesMax, &legacy_);
  for (const Key& key : walk.wanted) {
    if (unread_.erase(key) == 0) continue;
    CgroupName name;
    // Half a name is better than no name. A missing name is remembered too: a removed cgroup does not come back.
    if (!NameByWalks(key, &name) && name.path.empty()) unknown_.Add();
    Remember(key, std::move(name));
  }
  // Requests that came after the walk had begun were not in `wanted`, but the walk may have found their cgroups. The
  // other requests stay in `unread_`, because their cgroups may be newer than the walk.
  absl::erase_if(unread_, [this](const Key& key) {
    CgroupName name;
    const bool named = NameByWalks(key, &name);
    if (named) Remember(key, std::move(name));
    return named;
  });
}

bool CgroupNames::NameByWalks(Key key, CgroupName* name) const {
  auto unified = unified_.find(key.v2_id);
  auto legacy = legacy_.find(key.v1_id);
  std::vector<std::string> paths;
  if (legacy != legacy_.end()) paths.push_back(legacy->second);
  *name = NameOf(unified == unified_.end() ? "" : unified->second, paths);
  return (key.v2_id == 0 || unified != unified_.end()) && (key.v1_id == 0 || legacy != legacy_.end());
}

void CgroupNames::Remember(Key key, CgroupName name) {
  if (names_.size() >= kNamesMax) names_.clear();
  names_.insert_or_assign(key, std::move(name));
}

}  // namespace tributary
