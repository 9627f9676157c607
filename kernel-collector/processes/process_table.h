#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/metrics.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/code_object_table.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/processes/proc_reader.h"
#include "profile/model.h"

namespace tributary {

// One run of a program: the time of a process from its fork or exec to its exit or its next exec. A sample that waits
// refers to its run. Loop thread only.
struct ProcessRun {
  static constexpr size_t kUncoveredPagesMax = 256;

  Pid pid, parent;
  int64_t start_time_ns = 0;   // exact, from a sample; 0: not known yet
  uint64_t start_ticks = 0;    // from /proc; 0: unknown
  uint32_t exec_sequence = 0;  // execs seen since the process became known
  uint64_t exec_id = 0;        // the kernel's own count of execs, from a sample
  std::string comm;            // of the group leader, at the time of the run's first sample
  std::string executable_path;
  CodeFilePtr executable;
  MappingTable mappings;
  std::shared_ptr<const Runtime> generated_code;  // for mappings without a file; null: not needed yet
  uint64_t mapping_changes = 0;  // grows with every change of `mappings`; a sample that waits for a mapping compares it

  MonotonicNs began;      // time of the fork or exec event; 0: there was none
  bool complete = false;  // every mapping is known: followed since its exec, or scanned
  bool stale = false;     // events were lost since then
  bool scan_running = false;
  bool scanned = false;
  MonotonicNs last_scan;
  bool sampled = false;  // reported to the reducer: comm no longer changes
  bool exited = false;
  MonotonicNs last_seen;  // time of the last event, scan or sample of the run

  // Pages that no mapping covered even after a sample had waited for a mapping. Code without frame pointers breaks
  // frame-pointer chains, which then lead to such pages again and again. Later samples do not wait for mappings of
  // these pages.
  absl::flat_hash_set<uint64_t> uncovered_pages;

  // The address ranges where one mapping replaced another, with the time; the newest last. A walk in the kernel may
  // have used the old mapping for some time after that.
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
  // Events before this time may have been lost. So for an address in `replaced`, it is unknown which mapping was there
  // before this time.
  MonotonicNs unsure_until;
  bool IsUnsure(uint64_t address, MonotonicNs time) const {
    return time < unsure_until && std::any_of(
                                      replaced.begin(), replaced.end(),
                                      [address](const Replaced& r) { return r.start <= address && address < r.end; });
  }

  bool NeedsScan() const { return !complete || stale || (parent.value == 0 && !scanned); }

  // When a process moves to another cgroup, the batch needs a new definition of the process. If the threads of a
  // process are in different cgroups, every sample may count as a move. After kCgroupMovesMax moves, the process keeps
  // its last cgroup.
  static constexpr uint32_t kCgroupMovesMax = 64;
  uint32_t cgroup_moves = 0;
  bool cgroup_known = false;
  uint64_t cgroup_v2_id = 0, cgroup_v1_id = 0;
  std::string cgroup_path, container_id;

  // The resource attributes that the process declares, and the state of reading them (resource_reader.h). If a pointer
  // to attributes is null, the process declares none, or they are unknown.
  enum class Environment : uint8_t { kUnread, kReading, kKnown };
  Environment environment = Environment::kUnread;
  bool is_being_read = false;
  int64_t context_period_ns = 0;
  MonotonicNs context_due;
  std::shared_ptr<const std::string> environment_attributes, context_attributes;
  std::shared_ptr<const std::string> attributes;  // merged
  // Other runs with the same environment. `forked_from` is the run that forked this run, if the environment of
  // `forked_from` was not known at that time. `heirs` are children that ended before their environment could be read.
  // They wait for this run's environment.
  static constexpr size_t kHeirsMax = 1024;
  std::weak_ptr<ProcessRun> forked_from;
  std::vector<std::shared_ptr<ProcessRun>> heirs;  // owned, because a run that an exec replaced is in no table

  // The code objects of the language runtimes in the run's memory; null: none was read yet. If the run is a fork,
  // `copied_from` is the run whose memory it began with.
  std::shared_ptr<CodeObjectTable> code_objects;
  std::weak_ptr<ProcessRun> copied_from;

  // `interned` is the run's number in the dictionary of generation `interned_generation`. `interned_generation` is 0 if
  // the run must be defined again, because a field above has changed.
  uint64_t interned_generation = 0;
  bool interned_executable = false;  // the definition names the executable: its id was already known
  ProcessRef interned;
};
using ProcessRunPtr = std::shared_ptr<ProcessRun>;

// Tracks every process by the sideband's events. The data of processes from before the first event, and of processes
// whose events were lost, comes from /proc (Merge). The caller must pass events in order of time. A run stays in the
// table for kGraceNs after its exit, because samples of it may still be in processing. The table has at most kRunsMax
// runs. A run above the limit is counted, and exists only while one of its samples is in processing.
class ProcessTable : public SidebandVisitor {
 public:
  static constexpr size_t kRunsMax = 131'072;
  static constexpr int64_t kGraceNs = 5 * kNsPerSecond;
  static constexpr size_t kMemoryNamesMax = 1024;  // memory with other names is shown without its name
  static constexpr size_t kMemoryNameBytesMax = 128;

  ProcessTable(CodeFileTable& executables, Metrics& metrics);

  void OnMmap(const MmapEvent& event) override;
  void OnFork(const ForkEvent& event) override;
  void OnComm(const CommEvent& event) override;
  void OnExit(const ExitEvent& event) override;
  void OnKernelCode(const KernelCodeEvent&) override {}
  void OnCgroup(const CgroupEvent&) override {}
  void OnLost(const LostEvent& event) override;

  // Returns the run that a sample belongs to. If the process is unknown, returns a new run that is not complete. Never
  // returns null.
  ProcessRunPtr ForSample(Pid pid, int64_t start_time_ns, MonotonicNs time);
  // Returns the run that a process event belongs to; nullptr if the process is unknown. Adds no run.
  ProcessRunPtr ForEvent(Pid pid, int64_t start_time_ns) const;
  ProcessRunPtr Find(Pid pid) const;

  // Merges the data of a process from /proc. Ignores the snapshot if events show that the pid now belongs to another
  // process or another program. The caller must first pass all events from before the snapshot. If no events were lost,
  // a mapping that the snapshot confirms keeps its executable.
  void Merge(const ProcSnapshot& snapshot);
  // Marks processes as exited if /proc did not list them at `read_at`, and no event, scan or sample has shown them
  // since.
  void MergeList(const std::vector<Pid>& pids, MonotonicNs read_at);
  // Returns true if events were lost since the last call. The lost events may include exits.
  bool TakeLost() { return std::exchange(lost_, false); }

  void DropExited(MonotonicNs now);
  // Returns the runs in which an event replaced a mapping since the last call, or Merge replaced all mappings. Data
  // that was derived from the old mappings may be wrong now.
  std::vector<ProcessRunPtr> TakeChanged() { return std::exchange(changed_, {}); }
  // `dropped` is called with the pid of each run that DropExited removes.
  void SetDropped(std::function<void(Pid)> dropped) { dropped_ = std::move(dropped); }
  size_t size() const { return runs_.size(); }

 private:
  ProcessRunPtr Add(Pid pid);
  Mapping MakeMapping(const FileKey& key, Pid pid, uint64_t start, uint64_t end, uint64_t offset, MonotonicNs learned,
                      std::string_view path);
  const std::string* MemoryName(std::string_view path);

  CodeFileTable& executables_;
  std::set<std::string, std::less<>> memory_names_;  // mappings point to them
  const std::string anonymous_ = "[anonymous code]";
  absl::flat_hash_map<Pid, ProcessRunPtr> runs_;
  bool lost_ = false;
  std::vector<ProcessRunPtr> changed_;
  std::function<void(Pid)> dropped_;
  Counter& refused_;
  Counter& mappings_refused_;
};

}  // namespace tributary
