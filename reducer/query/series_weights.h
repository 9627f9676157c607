#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
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
  bool used = false;       // something was added
  bool described = false;  // a description was found
  void Add(uint64_t v, uint64_t c) {
    value += v;
    count += c;
    used = true;
  }
  void Add(const SeriesWeight& other) { Add(other.value, other.count); }
  friend bool operator>(const SeriesWeight& a, const SeriesWeight& b) {
    return std::tie(a.value, a.count) > std::tie(b.value, b.count);
  }
};

// Weights by number, for millions of samples. The memory depends on how many blocks of kBlockNumbers numbers have a
// weight, not on the largest number: 27 bytes for each number if all numbers of a block have one. Used by one thread.
template <typename No>
class SeriesWeights {
 public:
  void Add(No no, uint64_t value, uint64_t count) {
    const uint32_t block = no.value / kBlockNumbers;
    // Samples of one batch have numbers that are close together.
    if (latest_ == nullptr || block != latest_block_) {
      latest_ = &blocks_[block];
      if (*latest_ == nullptr) *latest_ = std::make_unique<Block>();
      latest_block_ = block;
    }
    SeriesWeight& weight = (**latest_)[no.value % kBlockNumbers];
    if (!weight.used) ++size_;
    weight.Add(value, count);
  }
  // Returns nullptr if nothing was added for the number.
  const SeriesWeight* Find(No no) const {
    const auto block = blocks_.find(no.value / kBlockNumbers);
    if (block == blocks_.end()) return nullptr;
    const SeriesWeight& weight = (*block->second)[no.value % kBlockNumbers];
    return weight.used ? &weight : nullptr;
  }
  SeriesWeight* Find(No no) { return const_cast<SeriesWeight*>(std::as_const(*this).Find(no)); }
  // Calls `visit` with each number and its weight, in no particular order.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (const auto& [block, weights] : blocks_) {
      for (uint32_t i = 0; i < kBlockNumbers; ++i) {
        if ((*weights)[i].used) visit(No{block * kBlockNumbers + i}, (*weights)[i]);
      }
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return blocks_.size() * kBlockBytes; }

 private:
  static constexpr uint32_t kBlockNumbers = 8;
  static constexpr size_t kBlockBytes = 220;  // with the memory allocator's share, and that of the hash table
  using Block = std::array<SeriesWeight, kBlockNumbers>;

  absl::flat_hash_map<uint32_t, std::unique_ptr<Block>> blocks_;
  std::unique_ptr<Block>* latest_ = nullptr;  // in blocks_, until the next number that is not in latest_block_
  uint32_t latest_block_ = 0;
  size_t size_ = 0;
};

// The weights of the selected processes and threads of one shard, by their numbers.
struct ShardWeights {
  SeriesWeights<store::ProcessNo> processes;
  SeriesWeights<store::ThreadNo> threads;
};

// Weighs processes with sums, which are kept longer than raw samples, and threads with raw samples. If the selector has
// labels of threads, weighs processes with raw samples too. A gauge has no values for threads. ResourceExhausted: there
// are too many processes or threads (QueryLimits::processes_max, selection_bytes_max).
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
