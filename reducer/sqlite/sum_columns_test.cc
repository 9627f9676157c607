#include "reducer/sqlite/sum_columns.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace tributary::store {
namespace {

struct Sums {
  std::vector<StoredSum> stacks;
  std::vector<StoredThreadSum> threads;
};

Sums RandomSums(uint64_t seed, uint32_t stacks, uint32_t threads) {
  std::mt19937_64 random(seed);
  const auto value = [&random](uint64_t count) { return random() % 10 == 0 ? random() : count * 52'631'579; };
  Sums sums;
  for (uint32_t i = 0; i < stacks; ++i) {
    const uint64_t count = 1 + random() % 100;
    sums.stacks.push_back({i * 3, static_cast<uint32_t>(random()), value(count), count});
  }
  for (uint32_t i = 0; i < threads; ++i) {
    const uint64_t count = 1 + random() % 100;
    sums.threads.push_back({static_cast<uint32_t>(random()), i / 2, value(count), count});
  }
  return sums;
}

void ExpectThreads(const ThreadWeights& columns, const std::vector<StoredThreadSum>& threads) {
  ASSERT_EQ(columns.threads.size(), threads.size());
  for (size_t i = 0; i < threads.size(); ++i) {
    EXPECT_EQ(columns.threads[i].value, threads[i].thread);
    EXPECT_EQ(columns.processes[i].value, threads[i].process);
    EXPECT_EQ(columns.values[i], threads[i].value);
    EXPECT_EQ(columns.counts[i], threads[i].count);
  }
}

TEST(SumColumnsTest, RoundTrip) {
  for (const auto& [stacks, threads] : {std::pair(1000u, 300u), {1u, 1u}, {0u, 0u}, {5u, 200u}}) {
    const Sums sums = RandomSums(7, stacks, threads);
    const std::string encoded = EncodeSums(sums.stacks, sums.threads);
    SumColumns columns;
    ASSERT_TRUE(DecodeSums(encoded, &columns).ok());
    ASSERT_EQ(columns.nodes.size(), stacks);
    for (size_t i = 0; i < stacks; ++i) {
      EXPECT_EQ(columns.processes[i].value, sums.stacks[i].process);
      EXPECT_EQ(columns.nodes[i].value, sums.stacks[i].node);
      EXPECT_EQ(columns.values[i], sums.stacks[i].value);
      EXPECT_EQ(columns.counts[i], sums.stacks[i].count);
    }
    ThreadWeights weights;
    ASSERT_TRUE(DecodeThreadSums(encoded, &weights).ok());
    ExpectThreads(weights, sums.threads);
  }
}

// Two sums as stored, byte for byte, by a release before schema 16.
TEST(SumColumnsTest, RowsOfEarlierReleasesHaveNoThreads) {
  const std::string stored("\x01\x02\x06\x02\x0e\x00\x0a\x02\x02\x00\x02", 11);
  SumColumns columns;
  ASSERT_TRUE(DecodeSums(stored, &columns).ok());
  EXPECT_EQ(columns.nodes, (std::vector<NodeNo>{NodeNo{3}, NodeNo{4}}));
  EXPECT_EQ(columns.processes, (std::vector<ProcessNo>{ProcessNo{7}, ProcessNo{7}}));
  EXPECT_EQ(columns.counts, (std::vector<uint64_t>{1, 1}));
  EXPECT_EQ(columns.values, (std::vector<uint64_t>{10, 10}));
  ThreadWeights weights;
  weights.threads.resize(3);
  ASSERT_TRUE(DecodeThreadSums(stored, &weights).ok());
  ExpectThreads(weights, {});
}

TEST(SumColumnsTest, SumsOfOnePeriodTakeThreeBytesAStackAndFiveAThread) {
  Sums sums;
  for (uint32_t i = 0; i < 1000; ++i) sums.stacks.push_back({i, 7, 52'631'579u * (1 + i % 3), 1 + i % 3});
  EXPECT_LE(EncodeSums(sums.stacks, {}).size(), 4'070u);
  for (uint32_t i = 0; i < 1000; ++i) sums.threads.push_back({i, i / 4, 52'631'579u * (1 + i % 3), 1 + i % 3});
  EXPECT_LE(EncodeSums(sums.stacks, sums.threads).size(), 8'150u);
}

TEST(SumColumnsTest, RefusesEveryTruncation) {
  const Sums sums = RandomSums(1, 50, 20);
  const std::string encoded = EncodeSums(sums.stacks, sums.threads);
  const size_t threads_end = EncodeSums({}, sums.threads).size() - 1;  // without the unit of the other sums
  for (size_t size = 0; size < encoded.size(); ++size) {
    SumColumns columns;
    EXPECT_TRUE(absl::IsDataLoss(DecodeSums(encoded.substr(0, size), &columns))) << size;
    ThreadWeights weights;
    if (size < threads_end) {
      EXPECT_TRUE(absl::IsDataLoss(DecodeThreadSums(encoded.substr(0, size), &weights))) << size;
    }
  }
  SumColumns columns;
  EXPECT_FALSE(DecodeSums(encoded + "x", &columns).ok());
}

TEST(SumColumnsTest, SurvivesFlippedBytes) {
  const Sums sums = RandomSums(2, 50, 20);
  const std::string good = EncodeSums(sums.stacks, sums.threads);
  std::mt19937_64 random(5);
  for (int i = 0; i < 20'000; ++i) {
    std::string bad = good;
    bad[random() % bad.size()] = static_cast<char>(random());
    SumColumns columns;
    if (DecodeSums(bad, &columns).ok()) {
      EXPECT_LE(columns.nodes.size(), bad.size());
      EXPECT_EQ(columns.nodes.size(), columns.values.size());
    }
    ThreadWeights weights;
    if (DecodeThreadSums(bad, &weights).ok()) {
      EXPECT_LE(weights.threads.size(), bad.size());
      EXPECT_EQ(weights.threads.size(), weights.counts.size());
      EXPECT_EQ(weights.threads.size(), weights.processes.size());
    }
  }
}

}  // namespace
}  // namespace tributary::store
