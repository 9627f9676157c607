#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/runtime.h"
#include "kernel-collector/processes/worker.h"
#include "kernel-collector/runtimes/jit/names_memory.h"

namespace tributary {

class JitProcess;

// Names the code that processes generate, from the files that they write for profilers: /tmp/perf-PID.map and jitdumps
// (docs/runtimes.md). A process's files are read when a sample first has an address in its generated code; the sample
// waits. They are read again when a sample has an address without a name, at most every kReadAgainNs, or up to
// kReadAgainMaxNs if the process has no such file. `executor` should tolerate some stuck jobs, because a process can
// delay the reading of its files. Loop thread only.
class JitRuntimes : public RuntimeMaker {
 public:
  static constexpr int64_t kReadAgainNs = 500 * kNsPerMs;
  static constexpr int64_t kReadAgainMaxNs = 32 * kNsPerSecond;
  static constexpr int64_t kRefreshNs = 5 * kNsPerSecond;  // names that are used are read again after this time
  static constexpr size_t kProcessMibMax = 32;             // memory for the names of one process
  static constexpr size_t kMibMax = 64;                    // of all processes
  static constexpr int64_t kReadBytesPerSecond = 16 << 20;
  static constexpr int64_t kReadBytesBurst = 64 << 20;
  static constexpr int64_t kReadBytesMin = 1 << 20;  // a reading may read so much
  static constexpr size_t kReadingsMax = 16;         // at the same time
  static constexpr size_t kWaitingMax = 4096;

  JitRuntimes(std::string proc_root, Executor& executor, const Clock& clock, Metrics& metrics);
  ~JitRuntimes() override;

  std::shared_ptr<const Runtime> Make(const ProcessRun& run) override;

  // Takes over finished readings and starts the next ones. The caller must first pass to `processes` all events that
  // have arrived. Names that a caller of Runtime::Find has got are invalid after this call.
  void Tick(ProcessTable& processes);

 private:
  friend class JitProcess;
  struct Reading;

  void Finish(Reading& reading, const ProcessTable& processes);
  void NoteRefused(const JitProcess& process, const absl::Status& status, Counter& counter, std::string* last);
  void AdoptNames(JitProcess& child);
  // Returns true if a reading was started, or if the process is of no interest any more.
  bool Start(const std::shared_ptr<JitProcess>& process, ProcessTable& processes);
  ProcessRunPtr FindParent(const ProcessRun& run, const ProcessTable& processes) const;
  void SetParent(JitProcess& process, const ProcessRun& run, ProcessRun& parent);
  void EarnBytes();
  void AddBytesToRead(int64_t bytes);

  const std::string proc_root_;
  Executor& executor_;
  const Clock& clock_;
  std::deque<std::weak_ptr<JitProcess>> wanted_;
  std::deque<std::shared_ptr<Reading>> finished_;
  size_t running_ = 0;
  int64_t bytes_to_read_ = kReadBytesBurst;  // without what running readings may read
  MonotonicNs earned_at_;
  // Forked processes that wait for their parent's names.
  std::vector<std::weak_ptr<JitProcess>> children_;
  const std::shared_ptr<NamesMemory> names_memory_ = std::make_shared<NamesMemory>(kMibMax << 20);
  Counter& readings_;
  Counter& read_bytes_;
  Counter& malformed_;
  Counter& functions_refused_;
  Counter& maps_refused_;
  Counter& dumps_refused_;
  Counter& unnamed_;
  Gauge& memory_;
  LogLimit log_limit_{kNsPerMinute};
  CallbackScope scope_;
};

}  // namespace tributary
