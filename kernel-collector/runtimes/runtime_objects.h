#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/callback_scope.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/processes/code_object_table.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/processes/runtime_binary.h"
#include "kernel-collector/processes/worker.h"

namespace tributary {

// Whether the memory of a process may be read.
enum class MayRead : uint8_t {
  kNo,      // its container has opted out of profiling
  kNotYet,  // its container is not known yet
  kYes,
};

// Finds the functions of code objects, which samples name by address and check. A worker reads an object from the
// process's memory when a sample first has it. The requests of one Poll are read together, one job for each process.
// After a fork the child's memory has the same objects, so the parent's memory is read if the child has ended. An
// object that was not read has no function: its frame then has no name, which is counted by reason. A name is never
// guessed: a read is valid only if the object has the check that the sample has.
//
// Cost: 20 ns for an object that was read before, and about 3 µs on the worker for a new one. Loop thread only.
class RuntimeObjects {
 public:
  static constexpr size_t kQueueMax = 8192;           // objects that wait for their read
  static constexpr size_t kProcessQueueMax = 1024;    // of one process
  static constexpr size_t kJobObjectsMax = 64;        // of one job
  static constexpr size_t kJobBytesMax = 128u << 10;  // of one job; objects beyond it are requested again
  static constexpr size_t kJobsMax = 8;               // submitted and not finished; a few of them may be stuck
  static constexpr size_t kEntriesMax = 262'144;      // of all tables; beyond it, tables are emptied: see Evict
  static constexpr size_t kBytesMax = 16u << 20;      // of all functions; the same
  static constexpr size_t kAncestorsMax = 3;          // whose memory is tried

  struct Options {
    // Opens the memory of a process. The second argument is its group: see ProcessMemoryReader. Called on the
    // executor's thread. Null: no objects are read.
    std::function<std::unique_ptr<ProcessMemory>(Pid, const std::string&)> open_memory;
    // Called when a process has ended: its pid may belong to another process next. May be null.
    std::function<void(Pid)> forget;
    int64_t bytes_per_second = 1 << 20;
  };

  // `executor` runs the reads, which may block.
  RuntimeObjects(Options options, Executor& executor, const Clock& clock, Metrics& metrics);

  struct Found {
    const PooledFunction* function = nullptr;  // null: none; valid until the caller returns to the event loop
    bool is_later = false;                     // ask again in a moment
    bool is_refused = false;                   // not read, because too many other reads are waiting
  };
  // Returns the function of the object in the memory of `run`. If it was not read yet, requests the read. `time` is the
  // time of the sample. The caller must count refusals once for each sample: see CountRefused.
  Found Find(ProcessRun& run, const RuntimeBinaryPtr& binary, const CodeObject& object, MonotonicNs time,
             MayRead may_read);

  void CountRefused(size_t objects) { refused_.Add(objects); }

  // Submits reads. Call it at the end of each Poll.
  void Tick();
  void Forget(Pid pid) {
    if (options_.forget) options_.forget(pid);
  }

  const CodeObjectStore& store() const { return *store_; }

 private:
  // Why an object has no function.
  enum class Failure : uint8_t {
    kChanged,     // other data is at the object's address now
    kMalformed,   // the object's content is invalid, or too large
    kGone,        // the process has ended, or the runtime is no longer mapped
    kUnreadable,  // the kernel refuses the read, or it took too long
  };
  static constexpr size_t kFailureCount = 4;
  struct KindCounters {
    Counter* read = nullptr;
    std::array<Counter*, kFailureCount> failed{};
  };
  struct Item;
  struct Request;
  struct Job;
  class Reader;

  static Failure FailureOf(const absl::Status& status);
  void Fail(CodeObjectTable& table, const RuntimeBinary& binary, const CodeObject& object, Failure failure);
  KindCounters& CountersOf(const RuntimeBinary& binary) { return counters_.at(binary.layout.kind); }
  // Returns the difference between addresses in the process and ELF addresses; nullopt if the run does not map the
  // runtime any more. Searches the mappings if they have changed, and once a second if the runtime was not there: the
  // file may have been read since.
  std::optional<uint64_t> FindBias(const ProcessRun& run, const RuntimeBinaryPtr& binary);
  bool IsFull(const CodeObjectTable& table) const;
  void Enqueue(ProcessRun& run, const RuntimeBinaryPtr& binary, const CodeObject& object, uint64_t bias);
  void Finish(Job& job);
  std::shared_ptr<CodeObjectTable> MakeTable(const ProcessRun& run) const;
  // Empties tables until all of them together are below the limits: those of the largest container first, its largest
  // tables first, so that one container cannot remove the names of all others. Of similar sizes, the table that was not
  // used for longest is first.
  void Evict();

  const Options options_;
  Executor& executor_;
  const Clock& clock_;
  std::shared_ptr<CodeObjectStore> store_;
  std::deque<std::shared_ptr<Request>> queue_;                                      // one for each process
  absl::flat_hash_map<const CodeObjectTable*, std::shared_ptr<Request>> by_table_;  // of queue_
  size_t queued_ = 0;                                                               // objects in queue_
  absl::flat_hash_map<uint64_t, std::shared_ptr<Request>> running_;                 // by the number of the job
  uint64_t last_job_ = 0;
  int64_t tokens_;  // bytes that may be read now; negative after large objects
  MonotonicNs tokens_at_;
  Counter& read_bytes_;
  Counter& refused_;
  Counter& evicted_;
  std::array<KindCounters, TRIB_RUNTIME_KIND_COUNT> counters_;  // by trib_runtime_kind
  CallbackScope scope_;
};

}  // namespace tributary
