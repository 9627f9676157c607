#include "reducer/sqlite/minute_sums.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

namespace tributary::store {

void SumTable::Add(int64_t time_ns, uint32_t node, uint32_t process, uint64_t value, uint64_t count) {
  Sum& sum = sums_[uint64_t{node} << 32 | process];
  if (aggregation_ == Aggregation::kLast) {
    int64_t& latest = latest_.try_emplace(process, time_ns).first->second;
    latest = std::max(latest, time_ns);
    if (sum.time_ns != time_ns) {
      if (sum.count != 0 && sum.time_ns > time_ns) return;
      sum = {.time_ns = time_ns};
    }
  }
  sum.value += value;
  sum.count += count;
}

void SumTable::Add(const SampleColumns& samples) {
  for (size_t i = 0; i < samples.times.size(); ++i) {
    Add(samples.times[i].value, samples.nodes[i].value, samples.processes[i].value, samples.values[i],
        samples.counts[i]);
  }
}

void SumTable::Add(const StoredSample& sample) {
  Add(sample.time_ns, sample.node, sample.process, sample.value, sample.count);
}

void SumTable::Start(Aggregation aggregation) {
  aggregation_ = aggregation;
  sums_.clear();
  latest_.clear();
}

std::vector<StoredSum> SumTable::Sorted() const {
  std::vector<StoredSum> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    const auto process = static_cast<uint32_t>(key);
    if (aggregation_ == Aggregation::kLast && sum.time_ns != latest_.at(process)) continue;
    rows.push_back({static_cast<uint32_t>(key >> 32), process, sum.value, sum.count});
  }
  std::sort(rows.begin(), rows.end(), [](const StoredSum& a, const StoredSum& b) {
    return std::pair(a.node, a.process) < std::pair(b.node, b.process);
  });
  return rows;
}

void ThreadSumTable::Add(const SampleColumns& samples) {
  for (size_t i = 0; i < samples.times.size(); ++i) {
    Add(samples.threads[i].value, samples.processes[i].value, samples.values[i], samples.counts[i]);
  }
}

std::vector<StoredThreadSum> ThreadSumTable::Sorted() const {
  std::vector<StoredThreadSum> rows;
  rows.reserve(sums_.size());
  for (const auto& [key, sum] : sums_) {
    rows.push_back({static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32), sum.value, sum.count});
  }
  std::sort(rows.begin(), rows.end(), [](const StoredThreadSum& a, const StoredThreadSum& b) {
    return std::pair(a.process, a.thread) < std::pair(b.process, b.thread);
  });
  return rows;
}

void MinuteSums::Start(Aggregation aggregation) {
  stacks_.Start(aggregation);
  threads_.Clear();
}

absl::StatusOr<size_t> InsertMinuteSum(Statement& insert, const MinuteKey& key, const MinuteSums& sums) {
  const std::vector<StoredSum> stacks = sums.stacks().Sorted();
  const PackedColumns packed = PackColumns(EncodeSums(stacks, sums.threads().Sorted()));
  RETURN_IF_ERROR(insert.Bind(key.minute, key.machine, key.type, stacks.size(), packed.raw_bytes, packed.bytes).Run());
  return packed.bytes.size();
}

}  // namespace tributary::store
