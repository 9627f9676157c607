#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Adds samples up by (node, process).
class SumTable {
 public:
  void Add(const StoredSample& sample) { Add(sample.node, sample.process, sample.value, sample.count); }
  void Add(uint32_t node, uint32_t process, uint64_t value, uint64_t count);
  // Rows `from` to `to` of the chunk.
  void Add(const SampleColumns& samples, size_t from, size_t to);

  std::vector<StoredSum> Sorted() const;  // by node, then process
  bool empty() const { return sums_.empty(); }
  void Clear() { sums_.clear(); }

 private:
  struct Sum {
    uint64_t value = 0, count = 0;
  };
  absl::flat_hash_map<uint64_t, Sum> sums_;  // key: node, process
};

struct MinuteKey {
  int64_t minute = 0;
  int64_t machine = 0;
  int type = 0;
  friend bool operator==(const MinuteKey&, const MinuteKey&) = default;
};
inline constexpr std::string_view kInsertMinuteSum =
    "INSERT INTO minute_sum (minute, machine, type, pairs, raw_bytes, columns) VALUES (?, ?, ?, ?, ?, ?)";
absl::Status InsertMinuteSum(Statement& insert, const MinuteKey& key, const std::vector<StoredSum>& sums);

}  // namespace tributary::store
