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
  store::ProcessNo process{};  // of a thread, if has_process
  bool has_process = false;
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
  // Returns the weight after the addition. It is valid until the object ends.
  SeriesWeight& Add(No no, uint64_t value, uint64_t count) {
    const uint32_t number = no.value / kBlockNumbers;
    Recent& recent = recent_[number % kRecentBlocks];
    if (recent.block == nullptr || recent.number != number) {
      std::unique_ptr<Block>& block = blocks_[number];
      if (block == nullptr) block = std::make_unique<Block>();
      recent = {block.get(), number};
    }
    SeriesWeight& weight = (*recent.block)[no.value % kBlockNumbers];
    if (!weight.used) ++size_;
    weight.Add(value, count);
    return weight;
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

  // The samples of one batch have few different threads, so most look-ups do not need the hash table.
  struct Recent {
    Block* block = nullptr;
    uint32_t number = 0;
  };
  static constexpr uint32_t kRecentBlocks = 128;

  absl::flat_hash_map<uint32_t, std::unique_ptr<Block>> blocks_;
  std::array<Recent, kRecentBlocks> recent_{};  // of blocks_, by the last bits of their numbers
  size_t size_ = 0;
};

// The weights of the selected processes and threads of one shard, by their numbers.
struct ShardWeights {
  SeriesWeights<store::ProcessNo> processes;
  SeriesWeights<store::ThreadNo> threads;
};

// Weighs threads with raw samples. Weighs processes with these too, if all of them are left, or if the selector has
// labels of threads; otherwise with sums, which are kept longer. A gauge has no values for threads. ResourceExhausted:
// there are too many processes or threads (QueryLimits::processes_max, selection_bytes_max).
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
