#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/cgroup_names.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/kernel_code.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/resource_reader.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "kernel-collector/processes/worker.h"
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
  UnwindTables::Options unwind;
  std::shared_ptr<UnwindCompiler> unwind_compiler;  // null: in this process
  int64_t hold_ns = kNsPerSecond;                   // how long a sample waits for missing data
  size_t held_samples_max = 16'384;                 // more held samples count as lost{hold_overflow}
  size_t held_bytes_max = 8u << 20;                 // the same limit, in bytes
  uint32_t scans_per_second_max = 100;              // of single processes, after the first scan
  int64_t scan_again_ns = 5 * kNsPerSecond;  // until one process is scanned again; × 12 if its table seems complete
  DictionaryLimits dictionary;
  // Called when a sampled process is found in the container `id`. May be null.
  std::function<void(std::string_view id)> on_container;
};

// Turns the samples of the probes into batches. This class is the whole collector except its loop, its socket and its
// symbols, so that a test can run it as a whole. Each Poll reads samples first, then the sideband, and merges the two
// by time. So a sample finds the mappings that were in force when it was taken. Missing data (a file to be read, unwind
// rows, a process never seen before) is requested from the worker, and the sample waits, `hold_ns` at most.
//
// Invariant: captured is counted in the kernel, before any sample can get lost. Here every drained sample ends in a
// batch or in a counter of losses. Accounting is read after the samples of its batch were drained. So at any moment
// captured ≥ sent + lost, and the difference is still being processed. After StopSampling and FinalBatch, captured
// equals sent + lost.
//
// Loop thread only. Cost: 5 µs per sample, with the ring and the reading of files (10,000 samples/s of compilers, -O1
// build).
class CollectorCore {
 public:
  CollectorCore(Probes& probes, BatchSink& sink, Executor& executor, const Clock& clock, Metrics& metrics,
                CoreOptions options);

  // Reads the addresses of kernel code, and every running process. Call it when the sideband runs and sampling has not
  // started. Takes 40 ms, and about 0.3 ms per process.
  void ScanAll();

  // Call it several times a second.
  void Poll();
  // Flushes the current batch, even if it is empty.
  void FlushBatch();

  // Ends sampling and drains the probes. The caller must then call Poll until held() is 0 or the time is up. FinalBatch
  // then flushes the remaining samples with the totals.
  void StopSampling();
  size_t held() const { return held_.size(); }
  void FinalBatch();

  // Counts samples that were lost after they left this object. The next batch's accounting reports them.
  void AddLost(LossReason reason, const SampleCounts& samples) { lost_.LostFor(reason) += samples; }
  Accounting ReadAccounting();

  const CodeFileTable& code_files() const { return code_files_; }
  CodeFileTable& code_files() { return code_files_; }
  const ProcessTable& processes() const { return processes_; }
  const Batcher& batcher() const { return batcher_; }
  KernelCode& kernel_code() { return kernel_code_; }

 private:
  // A waiting record whose process run is known.
  struct Held {
    std::vector<uint64_t> words;
    ProcessRunPtr run;
    std::shared_ptr<const MappingTable::List> mappings;  // null: the run's own table counts
    size_t frames_to_trust = Unwinder::kAllFrames;
    MonotonicNs until;
    // It waits only for a mapping that may be late: a retry is useless until the table has changed.
    bool for_mapping_only = false;
    uint64_t mapping_changes = 0;
  };
  class Merger;

  void DrainProbes();
  void TakeSamplesBefore(int64_t time_ns);
  void Take(const SampleRecord& record, std::span<const uint64_t> words);
  void RetryHeld(bool force);
  // Returns false if the sample must wait; with `force` it never waits. waits_for_mapping_only_ then says whether it
  // waits only for a mapping.
  bool TryAdd(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run, const MappingTable::List* mappings,
              bool force);
  // Walks the user stack, resolves the whole stack, and gives the kernel side its missing data. Returns false while
  // rows or files are loading.
  bool ResolveStack(const SampleRecord& record, size_t frames_to_trust, ProcessRun& run,
                    const MappingTable::List* mappings);

  // These work on the stack that was just resolved.
  bool IsStart(const ResolvedFrame& frame) const;
  bool CutAboveStart();
  bool CallsTheProgram(const ProcessRun& run) const;

  // Each of these returns true while its data is loading and worth the wait.
  bool AwaitScan(ProcessRun& run, bool uncovered);
  bool AwaitCgroup(const trib_sample& sample, ProcessRun& run);
  bool AwaitExecutable(const CodeFilePtr& executable);
  void ReadExecutable(const CodeFilePtr& executable);
  bool TakeScanToken();
  void SweepAfterLoss();

  Probes& probes_;
  Executor& executor_;
  const Clock& clock_;
  const CoreOptions options_;
  ProcReader reader_;
  CodeFileTable code_files_;
  ProcessTable processes_;
  CgroupNames cgroups_;
  ResourceReader resources_;
  Unwinder unwinder_;
  KernelCode kernel_code_;
  StackResolver resolver_;
  Batcher batcher_;

  std::vector<uint64_t> drained_;  // records of one poll, one after another (stored_record.h)
  struct Drained {
    int64_t time_ns;
    size_t begin, end;  // in drained_
  };
  std::vector<Drained> order_;  // by time
  size_t next_ = 0;             // index in order_ of the first sample not yet taken
  MonotonicNs dropped_at_;      // when exited processes were last dropped
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  WalkedStack walked_;
  ResolvedStack resolved_;
  bool waits_for_mapping_only_ = false;
  Accounting lost_;
  int64_t scan_tokens_ = 0;
  MonotonicNs scan_tokens_at_;
  Counter& held_total_;
  Counter& hold_expired_;
  std::array<Counter*, kEndingCount> endings_;
  CallbackScope scope_;
};

}  // namespace tributary
