#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "bpf/include/records.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/cgroup_names.h"
#include "kernel-collector/processes/code_file.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/stack_resolver.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/uplink/batcher.h"
#include "profile/batch.h"

namespace tributary {

struct CoreOptions {
  std::string proc_root = "/proc";
  std::string cgroup_root = "/sys/fs/cgroup";
  KernelLayout kernel;
  int64_t hold_ns = kNsPerSecond;            // how long a sample waits for what it needs
  size_t held_samples_max = 16'384;          // more of them are lost{hold_overflow}
  size_t held_bytes_max = 16u << 20;         // same, by size
  uint32_t scans_per_second_max = 100;       // of single processes, after the first scan
  int64_t scan_again_ns = 5 * kNsPerSecond;  // of one process
  DictionaryLimits dictionary;
};

// From probes to batches: everything of the collector but its loop, its socket and its symbols, so that a test can run
// it whole. Each Poll reads samples first, then the sideband, and merges the two by time: a sample meets the mappings
// that were in force when it was taken. What is still missing then (a file to be read, a process never seen before) is
// asked of the worker, and the sample waits, `hold_ns` at most.
//
// The law: captured is counted in the kernel, before anything can get lost. Here every sample drained ends in a batch
// or in a counter of losses. Accounting is read after the samples of its batch were drained, so that at any moment
// captured ≥ sent + lost, the difference being on its way; after Stop and FinalBatch the two are equal.
//
// Loop thread only. Cost: 5 µs a sample, ring and reading of files included (10,000 samples/s of compilers, -O1 build).
class CollectorCore {
 public:
  CollectorCore(Probes& probes, BatchSink& sink, Executor& executor, const Clock& clock, Metrics& metrics,
                CoreOptions options);

  // Reads every process that is there already. The sideband is on by now, sampling not yet. Takes about 0.3 ms a
  // process.
  void ScanAll();

  // Several times a second.
  void Poll();
  // Hands on what has come since the last call.
  void FlushBatch();

  // Ends sampling and takes in all that is left; then poll until nothing is held, or time is up, and FinalBatch hands
  // on the rest with the totals.
  void StopSampling();
  size_t held() const { return held_.size(); }
  void FinalBatch();

  // Samples lost behind this object: the next batch's accounting tells.
  void AddLost(LossReason reason, uint64_t samples) { lost_[static_cast<size_t>(reason)] += samples; }
  Accounting ReadAccounting();

  const CodeFileTable& code_files() const { return code_files_; }
  CodeFileTable& code_files() { return code_files_; }
  const ProcessTable& processes() const { return processes_; }
  const Batcher& batcher() const { return batcher_; }
  StackResolver& resolver() { return resolver_; }

 private:
  // A record whose process run is settled, and which waits.
  struct Held {
    std::vector<uint64_t> words;
    ProcessRunPtr run;
    std::shared_ptr<const MappingTable::List> mappings;  // null: the run's own table counts
    MonotonicNs until;
    // It waits for nothing but a mapping that may be late: no use in trying before the table has changed.
    bool for_mapping_only = false;
    uint64_t mapping_changes = 0;
  };
  class Merger;

  static const trib_sample& Record(const std::vector<uint64_t>& words, size_t offset) {
    return *reinterpret_cast<const trib_sample*>(words.data() + offset);
  }
  void DrainProbes();
  void TakeSamplesBefore(int64_t time_ns);
  void Take(const trib_sample& record);
  void RetryHeld(bool force);
  // False: it must wait (waits_for_mapping_only_ says what for), unless `force`.
  bool TryAdd(const trib_sample& record, ProcessRun& run, const MappingTable::List* mappings, bool force);

  // Each returns true when what it looks after is on its way and worth waiting for.
  bool AwaitScan(ProcessRun& run, bool uncovered);
  bool AwaitCgroup(const trib_sample& record, ProcessRun& run);
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
  StackResolver resolver_;
  Batcher batcher_;

  std::vector<uint64_t> drained_;  // records of one poll, one behind the other
  std::vector<size_t> order_;      // offsets into drained_, by time
  size_t next_ = 0;                // of order_: not yet taken
  std::deque<Held> held_;
  size_t held_bytes_ = 0;
  ResolvedStack resolved_;
  bool waits_for_mapping_only_ = false;
  uint64_t lost_[kLossReasonCount] = {};
  int64_t scan_tokens_ = 0;
  MonotonicNs scan_tokens_at_;
  Counter& held_total_;
  Counter& hold_expired_;
  std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace tributary
