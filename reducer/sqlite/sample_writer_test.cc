#include "reducer/sqlite/sample_writer.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "reducer/sqlite/shard_writer.h"
#include "reducer/sqlite/sqlite_store_testing.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

// Bounds the work for the samples of a batch: the nodes that are walked, and the descriptions that are written.
class SampleWriterTest : public SqliteStoreTest {
 protected:
  SqliteShardWriter& Writer() { return *static_cast<SqliteShardWriter*>(writer_.get()); }
  uint64_t Steps() { return Writer().samples().stacks().steps(); }
  int64_t Query(const std::string& sql) { return Writer().database().QueryInt(sql).value(); }
  static std::vector<uint64_t> Addresses(uint64_t first, uint32_t depth) {
    std::vector<uint64_t> addresses(depth);
    for (uint64_t& address : addresses) address = first++;
    return addresses;
  }
  // Returns the number of samples by the depth of their stacks.
  std::map<size_t, uint64_t> DepthsOf(std::string_view node_id) {
    std::map<size_t, uint64_t> depths;
    auto reader = Reader();
    const absl::Status scanned =
        reader->ScanSamples({UnixNs{0}, UnixNs{4'000'000'000 * kNsPerSecond}}, [&](const SampleColumns& columns) {
          if (columns.node_id != node_id) return absl::OkStatus();
          const auto trie = reader->LoadTrie(columns.day).value();
          for (NodeNo node : columns.nodes) {
            size_t depth = 0;
            for (; node.value != 0; node = trie.parents[node.value]) ++depth;
            ++depths[depth];
          }
          return absl::OkStatus();
        });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return depths;
  }
  // Commits a batch with samples of one stack, whose times alternate.
  void CommitAlternating(const std::vector<UnixNs>& times, int rounds, uint32_t depth) {
    ++collectors_;
    TestCollector collector("node-" + std::to_string(collectors_), static_cast<uint8_t>(collectors_));
    const ThreadRef thread = collector.Thread(1, "a");
    const NodeRef stack = collector.Stack(Addresses(1, depth));
    for (int i = 0; i < rounds; ++i) {
      for (const UnixNs time : times) collector.Add(time, thread, stack);
    }
    CommitOne(collector.Take(times.front()));
  }

  int collectors_ = 0;
};

TEST_F(SampleWriterTest, MapsAStackOncePerDayThoughDaysAlternate) {
  constexpr int kRounds = 50;
  constexpr uint32_t kDepth = 100;
  std::vector<UnixNs> times;
  for (int day = 4; day >= 0; --day) times.push_back(UnixNs{kNow.value - day * kNsPerDay});
  CommitAlternating(times, kRounds, kDepth);
  EXPECT_LE(Steps(), times.size() * kDepth);
  EXPECT_EQ(TotalsOf(*Reader()).stored, times.size() * kRounds);
  EXPECT_EQ(DepthsOf("node-1"), (std::map<size_t, uint64_t>{{kDepth, times.size() * kRounds}}));
}

// A node may send samples of four days at the same time (ingest::OldDayTurns).
TEST_F(SampleWriterTest, MapsAStackOncePerDayThoughBatchesAlternate) {
  constexpr uint32_t kDepth = 100;
  TestCollector collector("node");
  const ThreadRef thread = collector.Thread(1, "a");
  const NodeRef stack = collector.Stack(Addresses(1, kDepth));
  const auto commit = [&](int days_ago) {
    const UnixNs time{kNow.value - days_ago * kNsPerDay};
    collector.Add(time, thread, stack);
    CommitOne(collector.Take(time));
  };
  for (int round = 0; round < 50; ++round) {
    for (int day = 3; day >= 0; --day) commit(day);
  }
  EXPECT_EQ(Steps(), 4 * kDepth);
}

// The ids of a day take memory in each session.
TEST_F(SampleWriterTest, ForgetsTheIdsOfADayThatWasNotUsedForLong) {
  TestCollector collector("node");
  const ThreadRef thread = collector.Thread(1, "a");
  const NodeRef stack = collector.Stack(Addresses(1, 10));
  const auto commit = [&](int days_ago, int batches = 1) {
    const UnixNs time{kNow.value - days_ago * kNsPerDay};
    std::vector<RowBatch> group;
    for (int i = 0; i < batches; ++i) {
      collector.Add(time, thread, stack);
      group.push_back(collector.Take(time));
    }
    ASSERT_TRUE(writer_->Commit(group).ok());
  };
  for (const int day : {3, 2, 1, 0}) commit(day);
  commit(0, 2'000);
  ASSERT_EQ(Steps(), 40u);
  commit(1);
  EXPECT_EQ(Steps(), 40u) << "the two days used last stay";
  commit(2);
  EXPECT_EQ(Steps(), 50u);
}

TEST_F(SampleWriterTest, DescribesAProcessOncePerSlotThoughSlotsAlternate) {
  std::vector<UnixNs> times;
  for (int slot = 5; slot >= 0; --slot) times.push_back(UnixNs{kNow.value - slot * kSlotMinutes * kNsPerMinute});
  const auto described_bytes = [&](int rounds) {
    const std::string bytes = "SELECT ifnull(sum(max(raw_bytes, length(columns))), 0) FROM process_chunk";
    const int64_t before = Query(bytes);
    CommitAlternating(times, rounds, 1);
    return Query(bytes) - before;
  };
  const int64_t once = described_bytes(1);
  EXPECT_LE(described_bytes(50), 2 * once);
}

// The usual batch: its samples come in order, and those of the next slot and day come last.
TEST_F(SampleWriterTest, SamplesAroundMidnightGetTheirDays) {
  const int64_t midnight = (kNow.value / kNsPerDay) * kNsPerDay;
  TestCollector collector("node");
  for (int second = -3; second < 3; ++second) {
    collector.Add(UnixNs{midnight + second * kNsPerSecond}, collector.Thread(1, "a"),
                  collector.Stack(Addresses(1, 10)));
  }
  CommitOne(collector.Take(UnixNs{midnight + 3 * kNsPerSecond}));
  EXPECT_EQ(Steps(), 20u);
  EXPECT_EQ(DepthsOf("node"), (std::map<size_t, uint64_t>{{10, 6}}));
  EXPECT_EQ(Query("SELECT count(DISTINCT day) FROM trie_chunk"), 2);
  EXPECT_EQ(Query("SELECT count(*) FROM sample_chunk"), 2);
}

// The stacks have a common part, which is longer than the machine's share.
TEST_F(SampleWriterTest, WalksEachNodeOfCutStacksOncePerBatch) {
  constexpr uint32_t kCommon = 900, kStacks = 500;
  options_.nodes_per_day_max = 1000;
  options_.machine_nodes_per_day_min = 100;
  Reopen();
  TestCollector hostile("hostile");
  const auto commit = [&] {
    const uint64_t before = Steps();
    const ThreadRef thread = hostile.Thread(1, "a");
    for (uint64_t i = 0; i < kStacks; ++i) {
      std::vector<uint64_t> addresses = Addresses(1, kCommon);
      addresses.push_back(10'000 + i);
      for (int twice = 0; twice < 2; ++twice) hostile.Add(clock_.Unix(), thread, hostile.Stack(addresses));
    }
    CommitOne(hostile.Take(clock_.Unix()));
    return Steps() - before;
  };
  EXPECT_LE(commit(), kCommon + kStacks);
  EXPECT_LE(commit(), kCommon + kStacks);
  const std::map<size_t, uint64_t> depths = DepthsOf("hostile");
  ASSERT_EQ(depths.size(), 1u) << "all end at the same node";
  EXPECT_LT(depths.begin()->first, kCommon);
  EXPECT_EQ(depths.begin()->second, 4 * kStacks);
  EXPECT_EQ(metrics_.AddCounter("tributary_reducer_cut_stacks_total", "").value(), 4 * kStacks);
}

TEST_F(SampleWriterTest, ACutStackIsWholeOnceAnotherMachineHasAddedItsNodes) {
  options_.nodes_per_day_max = 1000;
  options_.machine_nodes_per_day_min = 20;
  Reopen();
  TestCollector first("first", 1), second("second", 2);
  const auto batch = [&](TestCollector& collector, uint64_t address) {
    collector.Add(clock_.Unix(), collector.Thread(1, "a"), collector.Stack(Addresses(address, 15)));
    return collector.Take(clock_.Unix());
  };
  for (uint64_t i = 0; i < 20; ++i) CommitOne(batch(first, 1 + 100 * i));
  const std::map<size_t, uint64_t> before = DepthsOf("first");
  // All in one transaction.
  std::vector<RowBatch> group;
  group.push_back(batch(first, 5'001));
  group.push_back(batch(second, 5'001));
  group.push_back(batch(first, 5'001));
  ASSERT_TRUE(writer_->Commit(group).ok());
  std::map<size_t, uint64_t> expected = before;
  ++expected[0];
  ++expected[15];
  EXPECT_EQ(DepthsOf("first"), expected);
  EXPECT_EQ(DepthsOf("second"), (std::map<size_t, uint64_t>{{15, 1}}));
}

}  // namespace
}  // namespace tributary::store
