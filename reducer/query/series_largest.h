#pragma once

#include <cstddef>
#include <cstdint>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/query/query_request.h"
#include "reducer/query/series_weights.h"
#include "reducer/store/store.h"

namespace tributary {

// The processes and threads of one shard with the largest weights, and their descriptions.
struct LargestSeries {
  struct Thread {
    store::ThreadRow row;
    size_t process = 0;  // index into `rows`
    SeriesWeight weight;
  };
  std::vector<store::ProcessRow> rows;  // of `processes`, and of the processes of `threads`; without `executable`
  absl::flat_hash_map<store::ProcessNo, SeriesWeight> processes;
  std::vector<Thread> threads;
};

// Describes the `most` processes and the `most` threads with the largest weights, and no others: a shard may have
// millions. Leaves out those that no piece describes.
//
// A process gets another number whenever its node sends it anew, for example after a restart of the collector. The
// weights of its other numbers are added to its largest number, so the weights of the result are complete. But a
// process is left out if its weight is spread over so many numbers that each of them is small.
//
// Add all rows, then call Take once. Used by one thread.
class LargestFinder {
 public:
  // `weights` must outlive the object.
  LargestFinder(size_t most, ShardWeights& weights);

  // Add what StoreReader::ScanIds visits: each process of the weights once, with its newest description, and all
  // threads. The caller marks the weights of processes as `described`, AddThread marks those of threads.
  void AddProcess(const store::ProcessIds& process);
  void AddThread(const store::ThreadIds& thread);
  // `filter`: that of the scan. If one of the largest processes has no description, scans once more.
  absl::StatusOr<LargestSeries> Take(store::StoreReader& reader, const QueryRequest& request,
                                     const store::ScanFilter& filter) &&;

  bool has_others() const { return has_others_; }  // some numbers are not among the largest

 private:
  template <typename No>
  using Weights = absl::flat_hash_map<No, SeriesWeight>;
  // What the numbers of one process have in common.
  using Identity = std::tuple<store::MachineNo, Pid, int64_t, uint32_t>;
  struct Numbered {
    store::ProcessNo no;
    Identity identity;
  };
  // The same for the threads of a process with this number.
  using ThreadIdentity = std::tuple<store::ProcessNo, Tid, store::StringId>;

  static Identity IdentityOf(const store::ProcessIds& process) {
    return {process.machine, process.pid, process.start_time_ns, process.exec_sequence};
  }
  ThreadIdentity IdentityOf(const store::ThreadIds& thread) const;
  void SetWanted();
  absl::Status LeaveOutUndescribed(store::StoreReader& reader, const QueryRequest& request,
                                   const store::ScanFilter& filter);
  absl::Status AddOtherNumbers(const QueryRequest& request);
  absl::Status AddOtherProcesses(const QueryRequest& request);
  absl::Status DescribeProcesses(store::StoreReader& reader);

  const size_t most_;
  ShardWeights& weights_;
  const bool has_others_;
  LargestSeries found_;
  Weights<store::ThreadNo> threads_;                                   // the largest
  absl::flat_hash_set<store::ProcessNo> wanted_;                       // the largest, and those of threads_
  std::vector<store::ProcessIds> processes_;                           // of wanted_, the newest first
  absl::flat_hash_map<store::ThreadNo, store::ThreadIds> thread_ids_;  // of threads_
  std::vector<Numbered> numbers_;                                      // of all processes, if has_others_
  std::vector<store::ThreadIds> other_threads_;                        // not in threads_, if has_others_
  absl::flat_hash_map<store::ProcessNo, store::ProcessNo> number_of_;  // of processes_: all their numbers
};

}  // namespace tributary
