#pragma once

#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/types.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// Reads the memory of running processes with process_vm_readv. A process can delay a read without limit: its memory may
// be mapped from a file system that does not answer, or be filled on demand by the process itself (userfaultfd). So
// reads must run on a Worker that replaces stuck threads (Worker::Options::stuck_max), and a process whose read takes
// too long is not read any more. Such a process occupies at most one thread for each read that had begun before. Many
// processes can do so together. So processes form groups, such as containers, and of each group one read runs at a
// time: a group occupies at most one thread, and the other threads are left for the other groups. Thread-safe. Must
// outlive the objects that Open returns.
class ProcessMemoryReader {
 public:
  static constexpr size_t kReadBytesMax = 1u << 20;  // of one call of Read
  static constexpr size_t kSlowMax = 1024;           // processes that are not read any more; the oldest is dropped
  static constexpr int64_t kDeadlineNs = kNsPerSecond;

  ProcessMemoryReader(const Clock& clock, Metrics& metrics);

  // Returns the memory of a process. `group` is "" if the process has no group. Errors of Read: DeadlineExceeded: the
  // read took longer than kDeadlineNs. Unavailable: another read of the group is running, so its thread was replaced.
  // PermissionDenied: reads of this process are off, or the kernel refuses them. NotFound: the process has ended.
  // DataLoss: some of the bytes are not mapped. InvalidArgument: too many parts or bytes.
  std::unique_ptr<ProcessMemory> Open(Pid pid, std::string group = "");

  // Returns true if a read of the process has taken longer than kDeadlineNs, or is taking longer now.
  bool IsSlow(Pid pid) const;
  // Allows reads of `pid` again. The caller must call it when the process has ended, because another process may get
  // this pid.
  void Forget(Pid pid);

 private:
  class Memory;
  struct Running {
    Pid pid;
    std::string group;
    MonotonicNs since;
  };
  using RunningReads = std::list<Running>;

  absl::StatusOr<RunningReads::iterator> Begin(Pid pid, const std::string& group);
  // Returns false if the read took too long.
  bool End(RunningReads::iterator read);
  bool IsSlowLocked(Pid pid) const;
  void AddSlow(Pid pid);

  const Clock& clock_;
  Counter &reads_, &bytes_, &failed_, &slow_counter_;
  mutable std::mutex mutex_;
  RunningReads running_;  // at most one for each thread
  absl::flat_hash_set<int32_t> slow_;
  std::deque<Pid> slow_order_;  // the oldest first; may contain pids that slow_ does not contain any more
};

}  // namespace tributary
