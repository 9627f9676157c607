#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/query/selection.h"
#include "reducer/query/series_weights.h"
#include "reducer/store/store.h"

namespace tributary {

// What the numbers of one process have in common, and one of the numbers.
struct ProcessIdentity {
  store::ProcessNo no;
  Pid pid;
  uint32_t exec_sequence = 0;
  store::MachineNo machine;
  int64_t start_time_ns = 0;
};

// The processes and threads of one shard with the largest weights, and their descriptions.
struct LargestSeries {
  struct Thread {
    store::ThreadRow row;
    size_t process = 0;  // index into `rows`
    SeriesWeight weight;
  };
  std::vector<store::ProcessRow> rows;  // of `processes`, and of the processes of `threads`
  absl::flat_hash_map<store::ProcessNo, SeriesWeight> processes;
  std::vector<Thread> threads;
};

// Describes the `most` processes and the `most` threads with the largest weights, and no others: a shard may have
// millions. `identities`: of all weighed processes that are `described`. Leaves out other processes, and their threads.
// Marks threads as described.
//
// A process gets another number whenever its node sends it anew, for example after a restart of the collector. The
// weights of its other numbers are added to its largest number, so the weights of the result are complete. But a
// process is left out if its weight is spread over so many numbers that each of them is small.
absl::StatusOr<LargestSeries> FindLargest(store::StoreReader& reader, const QueryRequest& request,
                                          const Selection& selection, std::span<const ProcessIdentity> identities,
                                          size_t most, ShardWeights* weights);

}  // namespace tributary
