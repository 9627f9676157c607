#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/sum_columns.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Sums up the samples of one type and minute, separately for each pair of trie node and process. For a gauge, sums up
// only each process's samples with the latest time stamp.
class SumTable {
 public:
  explicit SumTable(Aggregation aggregation = Aggregation::kSum) : aggregation_(aggregation) {}

  void Add(const SampleColumns& samples);
  void Add(const StoredSample& sample);

  std::vector<StoredSum> Sorted() const;  // as EncodeSums
  bool empty() const { return sums_.empty(); }
  void Start(Aggregation aggregation);  // discards all sums

 private:
  struct Sum {
    uint64_t value = 0, count = 0;
    int64_t time_ns = 0;  // only for a gauge
  };
  void Add(int64_t time_ns, uint32_t node, uint32_t process, uint64_t value, uint64_t count);

  Aggregation aggregation_;
  absl::flat_hash_map<uint64_t, Sum> sums_;        // key: node, process
  absl::flat_hash_map<uint32_t, int64_t> latest_;  // for a gauge: by process, the time of its last samples
};

// Sums up samples, separately for each pair of thread and process.
class ThreadSumTable {
 public:
  void Add(const SampleColumns& samples);
  void Add(const StoredSample& sample) { Add(sample.thread, sample.process, sample.value, sample.count); }
  std::vector<StoredThreadSum> Sorted() const;  // as EncodeSums
  void Clear() { sums_.clear(); }

 private:
  struct Sum {
    uint64_t value = 0, count = 0;
  };
  void Add(uint32_t thread, uint32_t process, uint64_t value, uint64_t count) {
    Sum& sum = sums_[uint64_t{process} << 32 | thread];
    sum.value += value;
    sum.count += count;
  }

  absl::flat_hash_map<uint64_t, Sum> sums_;  // key: process, thread
};

// What is stored of one type and minute when the minute is closed.
class MinuteSums {
 public:
  explicit MinuteSums(Aggregation aggregation = Aggregation::kSum) : stacks_(aggregation) {}

  template <typename Samples>
  void Add(const Samples& samples) {
    stacks_.Add(samples);
    threads_.Add(samples);
  }
  bool empty() const { return stacks_.empty(); }
  void Start(Aggregation aggregation);  // discards all sums
  const SumTable& stacks() const { return stacks_; }
  const ThreadSumTable& threads() const { return threads_; }

 private:
  SumTable stacks_;
  ThreadSumTable threads_;
};

struct MinuteKey {
  int64_t minute = 0;
  int64_t machine = 0;
  int type = 0;
  friend bool operator==(const MinuteKey&, const MinuteKey&) = default;
};
inline constexpr std::string_view kInsertMinuteSum =
    "INSERT INTO minute_sum (minute, machine, type, pairs, raw_bytes, columns) VALUES (?, ?, ?, ?, ?, ?)";
// Returns the size of the columns.
absl::StatusOr<size_t> InsertMinuteSum(Statement& insert, const MinuteKey& key, const MinuteSums& sums);

}  // namespace tributary::store
