#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/metrics.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/processes/proc_reader.h"
#include "profile/model.h"

namespace tributary {

// One program run: what a pid was from its fork or exec to its exit or next exec. Samples hold on to the run that they
// are of. Loop thread only.
struct ProcessRun {
  static constexpr size_t kUncoveredPagesMax = 256;

  Pid pid, parent;
  int64_t start_time_ns = 0;   // exact, from a sample; 0 = not known yet
  uint64_t start_ticks = 0;    // from /proc; 0 = not known
  uint32_t exec_sequence = 0;  // execs seen since the process is known
  uint64_t exec_id = 0;        // the kernel's own count of them, from a sample
  std::string comm;            // of the group leader, as it was when the run was first sampled
  std::string executable_path;
  CodeFilePtr executable;
  MappingTable mappings;
  uint64_t mapping_changes = 0;  // grows with every mapping learned: whether waiting for one may be over

  MonotonicNs began;      // the fork or exec that made it; 0 when it was found
  bool complete = false;  // every mapping is known: followed since its exec, or scanned
  bool stale = false;     // events were lost since
  bool scan_running = false;
  bool scanned = false;
  MonotonicNs last_scan;
  bool sampled = false;  // named to the reducer: comm stays as it is
  bool exited = false;
  MonotonicNs last_seen;  // exit, or a later sample

  // Pages that no mapping covers although one was waited for: frame-pointer chains of code without frame pointers lead
  // there again and again, and must not make every sample wait.
  absl::flat_hash_set<uint64_t> uncovered_pages;

  // Where one mapping took another's place, and when: a walk may not have known yet. The newest last.
  struct Replaced {
    uint64_t start = 0, end = 0;
    MonotonicNs time;
  };
  static constexpr size_t kReplacedMax = 16;
  std::vector<Replaced> replaced;
  void NoteReplaced(uint64_t start, uint64_t end, MonotonicNs time) {
    if (replaced.size() >= kReplacedMax) replaced.erase(replaced.begin());
    replaced.push_back({start, end, time});
  }
  // Events had been lost until then: where code changes places, nobody knows what was mapped before.
  MonotonicNs unsure_until;
  bool IsUnsure(uint64_t address, MonotonicNs time) const {
    return time < unsure_until && std::any_of(
                                      replaced.begin(), replaced.end(),
                                      [address](const Replaced& r) { return r.start <= address && address < r.end; });
  }

  bool NeedsScan() const { return !complete || stale || (parent.value == 0 && !scanned); }

  // Each is another definition of the process on the wire. Threads of one process may be in different cgroups, and take
  // turns being sampled: then the process stays, after so many, where it was seen last.
  static constexpr uint32_t kCgroupMovesMax = 64;
  uint32_t cgroup_moves = 0;
  bool cgroup_known = false;
  uint64_t cgroup_v2_id = 0, cgroup_v1_id = 0;
  std::string cgroup_path, container_id;

  // What it says of itself, and when that is looked at (resource_reader.h). Null: it says nothing, or is not known.
  enum class Environment : uint8_t { kUnread, kReading, kKnown };
  Environment environment = Environment::kUnread;
  bool is_being_read = false;
  int64_t context_period_ns = 0;
  MonotonicNs context_due;
  std::shared_ptr<const std::string> environment_attributes, context_attributes;
  std::shared_ptr<const std::string> attributes;  // both
  // Who has the same environment: the run that forked this one, where it was not known yet; and those that were forked
  // and gone before they could be read, and wait for this one's.
  static constexpr size_t kHeirsMax = 1024;
  std::weak_ptr<ProcessRun> forked_from;
  std::vector<std::shared_ptr<ProcessRun>> heirs;  // that exec has replaced are in no table

  // Its number in the dictionary of that generation; 0 when something above has changed since.
  uint64_t interned_generation = 0;
  bool interned_executable = false;  // the definition names the executable: its id was known by then
  ProcessRef interned;
};
using ProcessRunPtr = std::shared_ptr<ProcessRun>;

// Follows every process from the sideband; /proc is read for what was there before and for what got lost. Feed events
// in order of time. A run stays kGraceNs after its exit, as samples of it may still be in hand. Capped at kRunsMax; a
// process over it is known only while a sample of it is in hand, and counted.
class ProcessTable : public SidebandVisitor {
 public:
  static constexpr size_t kRunsMax = 131'072;
  static constexpr int64_t kGraceNs = 5 * kNsPerSecond;

  ProcessTable(CodeFileTable& executables, Metrics& metrics);

  void OnMmap(const MmapEvent& event) override;
  void OnFork(const ForkEvent& event) override;
  void OnComm(const CommEvent& event) override;
  void OnExit(const ExitEvent& event) override;
  void OnKernelCode(const KernelCodeEvent&) override {}
  void OnCgroup(const CgroupEvent&) override {}
  void OnLost(const LostEvent& event) override;

  // The run that a sample is of; one that is not complete when nothing is known of it. Never null.
  ProcessRunPtr ForSample(Pid pid, int64_t start_time_ns, MonotonicNs time);
  ProcessRunPtr Find(Pid pid) const;

  // What /proc said. Left aside where events have overtaken it: another process, or another program by now. Events from
  // before it was read must have been fed: of a process followed without a loss, mappings that it confirms stay.
  void Merge(const ProcSnapshot& snapshot);
  // Processes that /proc did not list at `read_at` and that no event has told of since are gone.
  void MergeList(const std::vector<Pid>& pids, MonotonicNs read_at);
  // A LOST event came since the last call: exits may be among the lost.
  bool TakeLost() { return std::exchange(lost_, false); }

  void DropExited(MonotonicNs now);
  // Runs whose mappings are no longer what they were, other than by growing, since the last call: what was told of them
  // elsewhere is wrong by now.
  std::vector<ProcessRunPtr> TakeChanged() { return std::exchange(changed_, {}); }
  // Called with the pid of each run that DropExited forgets.
  void SetDropped(std::function<void(Pid)> dropped) { dropped_ = std::move(dropped); }
  size_t size() const { return runs_.size(); }

 private:
  ProcessRunPtr Add(Pid pid);
  Mapping MakeMapping(const FileKey& key, Pid pid, uint64_t start, uint64_t end, uint64_t offset, MonotonicNs learned,
                      std::string_view path);

  CodeFileTable& executables_;
  absl::flat_hash_map<Pid, ProcessRunPtr> runs_;
  bool lost_ = false;
  std::vector<ProcessRunPtr> changed_;
  std::function<void(Pid)> dropped_;
  Counter& refused_;
  Counter& mappings_refused_;
  Counter& sideband_lost_;
};

}  // namespace tributary
