#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/event_collector.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/cgroup_names.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/kernel_code.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/resource_reader.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/runtimes/jit/jit_runtimes.h"
#include "kernel-collector/runtimes/runtime_kinds.h"
#include "kernel-collector/runtimes/runtime_objects.h"
#include "kernel-collector/runtimes/runtime_reader.h"
#include "kernel-collector/runtimes/runtime_slots.h"
#include "kernel-collector/runtimes/stack_mixer.h"
#include "kernel-collector/unwind/unwinder.h"
#include "kernel-collector/uplink/batcher.h"
#include "profile/batch.h"

namespace tributary {

struct CoreOptions {
  std::string proc_root = "/proc";
  std::string sys_root = "/sys";
  std::function<std::vector<BpfCode>()> list_bpf;  // see KernelCode::Options
  std::string cgroup_root = "/sys/fs/cgroup";
  // See CgroupNames::Options.
  std::string cgroup_v1;
  bool takes_cgroup_events = true;
  std::vector<std::string> resource_env;  // see ResourceReader::Options
  Executor* resource_executor = nullptr;  // null: use the common executor
  // Language runtimes that are on, and how the memory of their processes is read: see RuntimeObjects::Options.
  RuntimeSet runtimes = 0;
  std::span<const RuntimeKind> runtime_kinds = RuntimeKinds();
  std::function<std::unique_ptr<ProcessMemory>(Pid, const std::string&)> open_memory;
  std::function<void(Pid)> forget_memory;
  Executor* runtime_executor = nullptr;  // null: use the common executor
  UnwindTables::Options unwind;
  std::shared_ptr<UnwindCompiler> unwind_compiler;  // null: UnwindCompiler::InProcess
  int64_t hold_ns = kNsPerSecond;                   // how long a sample waits for missing data
  size_t held_samples_max = 16'384;                 // more held samples count as lost{hold_overflow}
  size_t held_bytes_max = 8u << 20;                 // the same limit, in bytes
  uint32_t scans_per_second_max = 100;              // of single processes, after the first scan
  int64_t scan_again_ns = 5 * kNsPerSecond;  // until one process is scanned again; × 12 if its table seems complete
  DictionaryLimits dictionary;
  uint32_t event_budget = 200;  // process events per second; 0: the probes report none
  // Called when a sampled process, or one with an event, is found to run in a container. `id` is the container's id.
  // May be null.
  std::function<void(std::string_view id)> on_container;
};

// Turns the samples and the process events of the probes into batches. The event loop, the connections and the symbol
// tables are in other classes, so a test can run this class alone. Each Poll reads the samples first and then the
// sideband's events, and processes both in order of time. So a sample is resolved with the mappings that its process
// had when the sample was taken. Some data may be missing: a file that was not read yet, unwind rows, or the data of a
// new process. The core then requests the data from the worker, and the sample waits for at most `hold_ns`.
//
// Invariant: the kernel side counts a sample as captured before the sample can get lost. In this class, every drained
// sample ends in a batch or is counted as lost. The accounting of a batch is read after the batch's samples were
// drained. So captured ≥ sent + lost at any moment; the difference is the number of samples that are still in
// processing. After StopSampling and FinalBatch, captured equals sent + lost.
//
// Loop thread only. Cost: 5 µs of CPU time per sample, including reads of the ring and of files. This was measured with
// 10,000 samples/s of running compilers, in an -O1 build.
class CollectorCore {
 public:
  CollectorCore(Probes& probes, BatchSink& sink, Executor& executor, const Clock& clock, Metrics& metrics,
                CoreOptions options);

  // Reads the addresses of kernel code and the data of every running process from /proc, and reports these processes as
  // seen_running. Call it after the sideband has started and before sampling starts. Takes 40 ms plus about 0.3 ms per
  // process.
  void ScanAll();

  // Processes the samples and events that have arrived. Call it several times a second.
  void Poll();
  // Flushes the current batch, even if it is empty.
  void FlushBatch();

  // Stops sampling and drains the probes. The caller must then call Poll until held() is 0 or the caller's time limit
  // is over, and then FinalBatch. FinalBatch flushes the remaining samples and the final accounting.
  void StopSampling();
  size_t held() const { return held_.size(); }
  void FinalBatch();

  // Counts samples as lost for `reason`. The next batch's accounting reports them.
  void AddLost(LossReason reason, const SampleCounts& samples) { lost_.LostFor(reason) += samples; }
  Accounting ReadAccounting();

  // From now on, samples and process events of these containers are dropped, and counted as lost for kOptedOut.
  // Replaces the earlier containers. Records that are already in the current batch are sent.
  void SetOptOuts(absl::flat_hash_set<std::string> containers);

  const CodeFileTable& code_files() const { return code_files_; }
  CodeFileTable& code_files() { return code_files_; }
  const ProcessTable& processes() const { return processes_; }
  const Batcher& batcher() const { return batcher_; }
  KernelCode& kernel_code() { return kernel_code_; }

 private:
  // A sample that waits for missing data.
  struct Held {
    std::vector<uint64_t> words;
    ProcessRunPtr run;
    std::shared_ptr<const MappingTable::List> mappings;  // null: use the run's current table
    size_t frames_to_trust = Unwinder::kAllFrames;
    MonotonicNs until;
    // The sample waits only for a mapping, whose event may arrive late. A retry is useless until the mapping table has
    // changed.
    bool for_mapping_only = false;
    uint64_t mapping_changes = 0;
  };
  class Merger;

  void DrainProbes();
  void TakeBefore(int64_t time_ns);
  void Take(const SampleRecord& record, std::span<const uint64_t> words);
  void RetryHeld(bool force);
  // Adds the sample to the batch, or drops it if its container opted out. Returns false if the sample must wait; it
  // never waits if `force` is true. If it must wait, waits_for_mapping_only_ says whether it waits only for a mapping.
  bool TryAdd(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run, const MappingTable::List* mappings,
              bool force);
  // Walks the user stack, resolves the whole stack, adds the frames of language runtimes, and puts the data that the
  // kernel's walk lacked into the BPF maps. Returns false while unwind rows, files or code objects are still loading.
  bool ResolveStack(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run,
                    const MappingTable::List* mappings, MayRead may_read);

  // ResolveStack calls these functions when walked_ and resolved_ contain the stack of the sample.
  bool IsStart(const ResolvedFrame& frame) const;
  bool CutAboveStart();
  bool CallsTheProgram(const ProcessRun& run) const;

  // Each Await function requests its data if it is missing. It returns true while the sample should wait for this data.
  bool AwaitScan(ProcessRun& run, bool uncovered);
  bool AwaitCgroup(const trib_sample& sample, ProcessRun& run);
  bool DropsOptedOut(const SampleRecord& record, const ProcessRun& run);
  bool AwaitExecutable(const CodeFilePtr& executable);
  void ReadExecutable(const CodeFilePtr& executable);
  bool TakeScanToken();
  void SweepAfterLoss();
  void SweepAfterLostEvents(const Accounting& totals);

  Probes& probes_;
  Executor& executor_;
  const Clock& clock_;
  const CoreOptions options_;
  ProcReader reader_;
  CodeFileTable code_files_;
  ProcessTable processes_;
  CgroupNames cgroups_;
  ResourceReader resources_;
  std::shared_ptr<RuntimeReader> runtime_reader_;  // shared with the worker's jobs
  RuntimeSlots runtime_slots_;
  RuntimeObjects runtime_objects_;
  StackMixer mixer_;
  Unwinder unwinder_;
  KernelCode kernel_code_;
  JitRuntimes jit_;
  StackResolver resolver_;
  Batcher batcher_;
  EventCollector events_;

  std::vector<uint64_t> drained_;  // records of one poll, one after another (stored_record.h)
  struct Drained {
    int64_t time_ns;
    size_t begin, end;  // in drained_
  };
  std::vector<Drained> order_;                      // by time
  size_t next_ = 0;                                 // index in order_ of the first sample not yet taken
  std::vector<trib_process_event> drained_events_;  // of one poll, by time
  size_t next_event_ = 0;
  MonotonicNs dropped_at_;  // when exited processes were last dropped
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  WalkedStack walked_;
  ResolvedStack resolved_;
  size_t unnamed_frames_ = 0;  // of resolved_
  bool waits_for_mapping_only_ = false;
  Accounting lost_;
  absl::flat_hash_set<std::string> opt_outs_;  // ids of containers
  uint64_t events_lost_ = 0;                   // in the kernel's ring, at the last flush
  std::optional<MonotonicNs> sweep_again_at_;
  int64_t scan_tokens_ = 0;
  MonotonicNs scan_tokens_at_;
  Counter& held_total_;
  Counter& hold_expired_;
  Counter& unnamed_frames_total_;
  Counter& opted_out_;
  std::array<Counter*, kEndingCount> endings_;
  CallbackScope scope_;
};

}  // namespace tributary
