#include "reducer/sqlite/minute_sums.h"

#include <algorithm>

namespace tributary::store {

void SumTable::Add(uint32_t node, uint32_t process, uint64_t value, uint64_t count) {
  Sum& sum = sums_[uint64_t{node} << 32 | process];
  sum.value += value;
  sum.count += count;
}

void SumTable::Add(const SampleColumns& samples, size_t from, size_t to) {
  for (size_t i = from; i < to; ++i) {
    Add(samples.nodes[i].value, samples.processes[i].value, samples.values[i], samples.counts[i]);
  }
}

std::vector<StoredSum> SumTable::Sorted() const {
  std::vector<StoredSum> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    rows.push_back(StoredSum{static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), sum.value, sum.count});
  }
  std::sort(rows.begin(), rows.end(), [](const StoredSum& a, const StoredSum& b) {
    return std::pair(a.node, a.process) < std::pair(b.node, b.process);
  });
  return rows;
}

absl::Status InsertMinuteSum(Statement& insert, const MinuteKey& key, const std::vector<StoredSum>& sums) {
  const PackedColumns packed = PackColumns(EncodeSums(sums));
  return insert.Bind(key.minute, key.machine, key.type, sums.size(), packed.raw_bytes, packed.bytes).Run();
}

}  // namespace tributary::store
