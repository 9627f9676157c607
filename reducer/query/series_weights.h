#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/query_context.h"
#include "reducer/query/selection.h"
#include "reducer/store/store.h"

namespace tributary {

struct SeriesWeight {
  uint64_t value = 0, count = 0;
  bool described = false;  // a description was found
  void Add(uint64_t v, uint64_t c) {
    value += v;
    count += c;
  }
  friend bool operator>(const SeriesWeight& a, const SeriesWeight& b) {
    return std::tie(a.value, a.count) > std::tie(b.value, b.count);
  }
};
template <typename No>
using SeriesWeights = absl::flat_hash_map<No, SeriesWeight>;

// The weights of the selected processes and threads of one shard, by their numbers.
struct ShardWeights {
  SeriesWeights<store::ProcessNo> processes;
  SeriesWeights<store::ThreadNo> threads;
};

// Weighs processes with sums, which are kept longer than raw samples, and threads with raw samples. If the selector has
// labels of threads, weighs processes with raw samples too. A gauge has no values for threads. ResourceExhausted: there
// are too many processes or threads.
absl::StatusOr<ShardWeights> WeighSeries(store::StoreReader& reader, const QueryContext& context,
                                         const Selection& selection);

// The processes of one shard whose resource changed within the range, and the states of the resource.
using SplitStates = absl::flat_hash_map<store::ProcessNo, std::shared_ptr<const ResourceStates>>;
// The weight in each state, with the same index as in ResourceStates. Processes of one place have the same states.
using SplitWeights = absl::flat_hash_map<const ResourceStates*, std::vector<SeriesWeight>>;

// Reads the data a second time, only for processes with a changed resource. Other processes are skipped. The keys of
// the result point into `split`.
absl::StatusOr<SplitWeights> WeighStates(store::StoreReader& reader, const QueryRequest& request,
                                         const Selection& selection, const SplitStates& split);

}  // namespace tributary
