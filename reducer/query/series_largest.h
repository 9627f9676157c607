#pragma once

#include <cstddef>
#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/selection.h"
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
  std::vector<store::ProcessRow> rows;  // of `processes`, and of the processes of `threads`
  SeriesWeights<store::ProcessNo> processes;
  std::vector<Thread> threads;
};

// Describes the `most` processes and the `most` threads with the largest weights, and no others: a shard may have
// millions. Leaves out processes that are not `described`, and their threads.
//
// A process gets another number whenever its node sends it anew, for example after a restart of the collector. The
// weights of its other numbers are added to its largest number, so the weights of the result are complete. But a
// process is left out if its weight is spread over so many numbers that each of them is small.
absl::StatusOr<LargestSeries> FindLargest(store::StoreReader& reader, const QueryRequest& request,
                                          const Selection& selection, const ShardWeights& weights, size_t most);

}  // namespace tributary
