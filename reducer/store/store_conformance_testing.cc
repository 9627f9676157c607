#include "reducer/store/store_conformance_testing.h"

namespace tributary::store {
namespace {

// Adds row `i` of samples or of sums.
template <typename Columns, typename Sums>
void AddRow(const Columns& columns, size_t i, Sums* sums) {
  auto& sum = (*sums)[{std::string(columns.node_id), columns.day, columns.nodes[i].value, columns.processes[i].value}];
  sum.first += columns.values[i];
  sum.second += columns.counts[i];
}

}  // namespace

StoreConformanceTest::Sums StoreConformanceTest::FromSums(TimeRange range) {
  Sums sums;
  EXPECT_TRUE(Reader()
                  ->ScanSums(range,
                             [&](const SumColumns& c) {
                               for (size_t i = 0; i < c.nodes.size(); ++i) AddRow(c, i, &sums);
                               return absl::OkStatus();
                             })
                  .ok());
  return sums;
}

StoreConformanceTest::Sums StoreConformanceTest::FromSamples(TimeRange range) {
  Sums sums;
  EXPECT_TRUE(Reader()
                  ->ScanSamples(range,
                                [&](const SampleColumns& c) {
                                  for (size_t i = 0; i < c.nodes.size(); ++i) {
                                    EXPECT_GE(c.times[i], range.from);
                                    EXPECT_LT(c.times[i], range.to);
                                    AddRow(c, i, &sums);
                                  }
                                  return absl::OkStatus();
                                })
                  .ok());
  return sums;
}

uint64_t StoreConformanceTest::Total(const Sums& sums) {
  uint64_t count = 0;
  for (const auto& [key, sum] : sums) count += sum.second;
  return count;
}

std::vector<SampleColumns> StoreConformanceTest::Chunks(StoreReader& reader, TimeRange range) {
  std::vector<SampleColumns> chunks;
  EXPECT_TRUE(reader
                  .ScanSamples(range,
                               [&](const SampleColumns& columns) {
                                 chunks.push_back(columns);
                                 chunks.back().node_id = {};  // valid only during the call
                                 return absl::OkStatus();
                               })
                  .ok());
  return chunks;
}

std::vector<uint64_t> StoreConformanceTest::StackOf(const TrieView& trie, NodeNo node) {
  std::vector<uint64_t> addresses;
  for (; node.value != 0; node = trie.parents[node.value]) {
    addresses.push_back(trie.frame_rows[trie.frames[node.value]].address);
  }
  return addresses;
}

uint64_t CountSamples(StoreReader& reader, TimeRange range) {
  uint64_t count = 0;
  EXPECT_TRUE(reader
                  .ScanSamples(range,
                               [&](const SampleColumns& columns) {
                                 count += columns.times.size();
                                 return absl::OkStatus();
                               })
                  .ok());
  return count;
}

}  // namespace tributary::store
