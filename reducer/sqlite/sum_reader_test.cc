#include "reducer/sqlite/sum_reader.h"

#include <gtest/gtest.h>

#include <map>
#include <utility>

#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

// The weights of threads must be the same, whichever table they come from.
class ThreadSumsTest : public SqliteStoreTest {
 protected:
  using Weights = std::map<std::pair<ProcessNo, ThreadNo>, std::pair<uint64_t, uint64_t>>;  // value and count

  void SetUp() override {
    const ThreadRef thread = collector_.Thread(1, "worker"), other = collector_.Thread(1, "other");
    const NodeRef leaf = collector_.Stack({1, 2});
    for (int64_t second = -600; second < 0; second += 7) {
      collector_.Add(At(second), second % 2 == 0 ? thread : other, leaf, static_cast<uint64_t>(1000 + second));
    }
    CommitOne(collector_.Take(At(0)));
    Maintain();
  }
  void Maintain() {
    for (int i = 0; i < 50; ++i) ASSERT_TRUE(writer_->Maintain(clock_.Unix()).ok());
  }
  void Execute(const char* sql) {
    ASSERT_TRUE(static_cast<SqliteShardWriter*>(writer_.get())->database().Execute(sql).ok());
  }
  Weights Find(TimeRange range) {
    Weights weights;
    const auto add = [&weights](const ThreadWeights& columns) {
      for (size_t i = 0; i < columns.threads.size(); ++i) {
        auto& [value, count] = weights[{columns.processes[i], columns.threads[i]}];
        value += columns.values[i];
        count += columns.counts[i];
      }
      return absl::OkStatus();
    };
    EXPECT_TRUE(Reader()->ScanThreadWeights(range, {}, add).ok());
    return weights;
  }

  const TimeRange all_{At(-1200), At(60)};
  TestCollector collector_{"node-a"};
};

TEST_F(ThreadSumsTest, ClosedMinutesNeedNoSamples) {
  const Weights with_samples = Find(all_);
  ASSERT_EQ(with_samples.size(), 2u);
  const TimeRange closed{At(-600), At(-300)};
  const Weights of_closed = Find(closed);
  ASSERT_EQ(of_closed.size(), 2u);
  ASSERT_NE(of_closed, with_samples);
  Execute("DELETE FROM sample_chunk WHERE minute < (SELECT value FROM watermark WHERE name = 'closed_before')");
  EXPECT_EQ(Find(all_), with_samples);
  EXPECT_EQ(Find(closed), of_closed);
}

TEST_F(ThreadSumsTest, SamplesThatComeLateCount) {
  const Weights before = Find(all_);
  for (int i = 0; i < 3; ++i) collector_.Add(At(-580), collector_.Thread(1, "late"), collector_.Stack({1, 2}), 5);
  CommitOne(collector_.Take(At(1)));
  const Weights after = Find(all_);
  EXPECT_EQ(before.size(), 2u);
  ASSERT_EQ(after.size(), 3u);
  Execute("DELETE FROM sample_chunk WHERE minute < (SELECT value FROM watermark WHERE name = 'closed_before')");
  EXPECT_EQ(Find(all_), after);
}

// A release before schema 16 wrote no sums of threads.
TEST_F(ThreadSumsTest, MinutesOfAnEarlierReleaseNeedTheirSamples) {
  const Weights expected = Find(all_);
  Execute(
      "UPDATE watermark SET value = (SELECT value FROM watermark WHERE name = 'closed_before') WHERE name = "
      "'threads_from'");
  Execute("DELETE FROM minute_sum");
  EXPECT_EQ(Find(all_), expected);
}

}  // namespace
}  // namespace tributary::store
