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

// Weights by number, for millions of samples. A number is looked up in a tree of three levels, whose upper two stay in
// the CPU's cache. The memory depends on how many blocks, pages and groups have a weight, not on the largest number: 27
// bytes for each number if all numbers of a page have one. Used by one thread.
template <typename No>
class SeriesWeights {
 public:
  // Returns the weight, without reading it. It is valid until the object ends.
  SeriesWeight& At(No no) {
    std::unique_ptr<Group>& group = groups_[no.value / kGroupNumbers];
    if (group == nullptr) group = Make<Group>();
    std::unique_ptr<Page>& page = (*group)[no.value % kGroupNumbers / kPageNumbers];
    if (page == nullptr) page = Make<Page>();
    std::unique_ptr<Block>& block = (*page)[no.value % kPageNumbers / kBlockNumbers];
    if (block == nullptr) block = Make<Block>();
    return (*block)[no.value % kBlockNumbers];
  }
  void AddTo(SeriesWeight& weight, uint64_t value, uint64_t count) {
    if (!weight.used) ++size_;
    weight.Add(value, count);
  }
  void Add(No no, uint64_t value, uint64_t count) { AddTo(At(no), value, count); }
  // Returns nullptr if nothing was added for the number.
  const SeriesWeight* Find(No no) const {
    const Group* group = groups_[no.value / kGroupNumbers].get();
    if (group == nullptr) return nullptr;
    const Page* page = (*group)[no.value % kGroupNumbers / kPageNumbers].get();
    if (page == nullptr) return nullptr;
    const Block* block = (*page)[no.value % kPageNumbers / kBlockNumbers].get();
    if (block == nullptr) return nullptr;
    const SeriesWeight& weight = (*block)[no.value % kBlockNumbers];
    return weight.used ? &weight : nullptr;
  }
  SeriesWeight* Find(No no) { return const_cast<SeriesWeight*>(std::as_const(*this).Find(no)); }
  // Calls `visit` with each number and its weight, the smallest number first.
  template <typename Visit>
  void ForEach(Visit visit) const {
    for (uint32_t g = 0; g < groups_.size(); ++g) {
      for (uint32_t p = 0; groups_[g] != nullptr && p < groups_[g]->size(); ++p) {
        const std::unique_ptr<Page>& page = (*groups_[g])[p];
        for (uint32_t b = 0; page != nullptr && b < page->size(); ++b) {
          for (uint32_t i = 0; (*page)[b] != nullptr && i < kBlockNumbers; ++i) {
            const SeriesWeight& weight = (*(*page)[b])[i];
            if (weight.used) visit(No{g * kGroupNumbers + p * kPageNumbers + b * kBlockNumbers + i}, weight);
          }
        }
      }
    }
  }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  size_t bytes() const { return bytes_; }

 private:
  static constexpr uint32_t kBlockNumbers = 8, kPageNumbers = 512, kGroupNumbers = 1u << 20;
  using Block = std::array<SeriesWeight, kBlockNumbers>;
  using Page = std::array<std::unique_ptr<Block>, kPageNumbers / kBlockNumbers>;
  using Group = std::array<std::unique_ptr<Page>, kGroupNumbers / kPageNumbers>;
  static constexpr size_t kAllocationBytes = 16;  // what the memory allocator adds to each allocation

  template <typename T>
  std::unique_ptr<T> Make() {
    bytes_ += sizeof(T) + kAllocationBytes;
    return std::make_unique<T>();
  }

  std::vector<std::unique_ptr<Group>> groups_{(uint64_t{1} << 32) / kGroupNumbers};
  size_t size_ = 0, bytes_ = 0;
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

// The processes of one shard whose names (SeriesPlaces) change within the range, and the states of their resource with
// only the attributes that are names.
using SplitStates = absl::flat_hash_map<store::ProcessNo, std::shared_ptr<const ResourceStates>>;
// The weight in each state, with the same index as in ResourceStates. Processes of one place have the same states.
using SplitWeights = absl::flat_hash_map<const ResourceStates*, std::vector<SeriesWeight>>;

// Reads the data a second time, only for processes whose names change. Other processes are skipped. The keys of the
// result point into `split`.
absl::StatusOr<SplitWeights> WeighStates(store::StoreReader& reader, const QueryRequest& request,
                                         const Selection& selection, const SplitStates& split);

}  // namespace tributary
