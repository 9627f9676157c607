#include "reducer/sqlite/loss_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "reducer/sqlite/schema.h"
#include "reducer/store/store_testing.h"

namespace tributary::store {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const SampleTypeInfo kType{"cpu", "nanoseconds"};

class LossTableTest : public ::testing::Test {
 protected:
  static UnixNs At(int64_t seconds) { return UnixNs{(1'760'000'000 + seconds) * kNsPerSecond}; }
  void Add(int64_t samples, int64_t seconds, const SampleTypeInfo& type = kType) {
    ASSERT_TRUE(table_.Add(1, type, LossReason::kRingFull, samples, At(seconds)).ok());
  }
  std::vector<int64_t> Read(int64_t* cursor) {
    std::vector<int64_t> samples;
    const auto visit = [&](const LossRecord& loss) {
      types_.push_back(loss.type.name);
      reasons_.emplace_back(ReasonText(loss));
      samples.push_back(loss.samples);
      return absl::OkStatus();
    };
    *cursor = ScanLosses(database_, machines_, *cursor, 1'000, visit).value();
    return samples;
  }
  void Maintain(int64_t seconds) { ASSERT_TRUE(table_.Maintain(At(seconds), kNsPerDay).ok()); }

  const TestDirectory directory_;
  Database database_ = OpenShardForWriting(directory_.path() + "/shard.db").value();
  LossTable table_ = LossTable::Prepare(database_).value();
  const Machines machines_{{1, {"node-a", "host-a"}}};
  std::vector<std::string> types_, reasons_;  // that were read
};

TEST_F(LossTableTest, AddsUpAWindowAndShowsItWhenItIsOver) {
  Add(3, 0);
  Add(4, 9);
  Maintain(9);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), IsEmpty()) << "the row may still change";
  Maintain(10);
  EXPECT_THAT(Read(&cursor), ElementsAre(7));
  Add(1, 11);
  Add(-2, 25);
  EXPECT_THAT(Read(&cursor), ElementsAre(1)) << "the next window seals the one before";
  Maintain(30);
  EXPECT_THAT(Read(&cursor), ElementsAre(-2));
}

// A row that a reader has seen must not change, whatever the clock does.
TEST_F(LossTableTest, AClockThatIsSetBackGetsNewRows) {
  Add(3, 20);
  Maintain(30);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(3));
  Add(4, 20);
  Maintain(40);
  EXPECT_THAT(Read(&cursor), ElementsAre(4));
}

TEST_F(LossTableTest, AfterARollbackTheWindowGetsNewRows) {
  {
    Transaction transaction = Transaction::Begin(database_).value();
    Add(3, 0);
  }
  table_.Forget();
  Add(4, 1);
  Maintain(10);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(4));
}

// The transaction that had to seal the window before is rolled back.
TEST_F(LossTableTest, ARollbackDoesNotHideTheWindowBefore) {
  Add(3, 0);
  {
    Transaction transaction = Transaction::Begin(database_).value();
    Add(4, 10);
  }
  table_.Forget();
  Maintain(11);
  Maintain(20);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(3));
}

TEST_F(LossTableTest, ExpiredRowsAreRemovedAndTheCursorStaysValid) {
  Add(3, 0);
  Maintain(10);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(3));
  Maintain(86'401);
  EXPECT_EQ(database_.QueryInt("SELECT count(*) FROM loss").value(), 0);
  EXPECT_THAT(Read(&cursor), IsEmpty());
  EXPECT_EQ(cursor, 1);
  Add(5, 86'402);
  Maintain(86'420);
  EXPECT_THAT(Read(&cursor), ElementsAre(5));
}

TEST_F(LossTableTest, TheOldestRowsAboveTheLimitAreRemoved) {
  Add(3, 0);
  ASSERT_TRUE(database_.Execute("UPDATE sqlite_sequence SET seq = 1000000 WHERE name = 'loss'").ok());
  Add(4, 10);
  Maintain(20);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(4));
}

TEST_F(LossTableTest, ANodeWithManyTypesHasFewRows) {
  for (int i = 0; i < 100; ++i) Add(1, 0, {"type-" + std::to_string(i), "count"});
  Maintain(10);
  int64_t cursor = 0;
  const std::vector<int64_t> samples = Read(&cursor);
  ASSERT_EQ(samples.size(), kLossTypesMax + 1);
  EXPECT_EQ(samples.back(), 92);
  EXPECT_EQ(types_.back(), "other");
  EXPECT_EQ(reasons_.back(), "ring_full") << "the reason is known";
}

TEST_F(LossTableTest, ANodeWithManyTypesAndReasonsHasFewRows) {
  constexpr uint8_t kReasons = kLossReasonCount - 1;  // kOptedOutAtReducer is recorded as kOptedOut
  Transaction transaction = Transaction::Begin(database_).value();
  for (int i = 0; i < 100; ++i) {
    for (uint8_t reason = 0; reason < kReasons; ++reason) {
      const SampleTypeInfo type = i == 0 ? SampleTypeInfo{} : SampleTypeInfo{"type-" + std::to_string(i), "count"};
      ASSERT_TRUE(table_.Add(1, type, static_cast<LossReason>(reason), 1, At(0)).ok());
    }
  }
  ASSERT_TRUE(transaction.Commit().ok());
  Maintain(10);
  int64_t cursor = 0;
  const std::vector<int64_t> samples = Read(&cursor);
  EXPECT_LE(samples.size(), kLossRowsMax + 2);
  EXPECT_EQ(std::accumulate(samples.begin(), samples.end(), int64_t{0}), 100 * kReasons);
  EXPECT_EQ(database_.QueryInt("SELECT sum(samples) FROM loss WHERE type = x''").value(), kReasons)
      << "process events do not become samples";
  // The rest has no reason that is wrong for most of it, so sums by reason are right or missing, never too large.
  std::map<std::string, int64_t> by_reason;
  for (size_t i = 0; i < samples.size(); ++i) by_reason[reasons_[i]] += samples[i];
  EXPECT_LE(by_reason["collector_killed"], 100);
  EXPECT_GT(by_reason["other"], 1'000);
  const auto rest = std::find(reasons_.begin(), reasons_.end(), "other") - reasons_.begin();
  EXPECT_EQ(types_[static_cast<size_t>(rest)], "other");
}

TEST_F(LossTableTest, AClockThatIsSetBackDoesNotMoveTheEnd) {
  Add(3, 9);
  Add(4, 5);
  EXPECT_EQ(database_.QueryInt("SELECT count(*) FROM loss WHERE last < first").value(), 0);
}

TEST_F(LossTableTest, SumsAreSaturated) {
  Add(INT64_MAX, 0);
  Add(INT64_MAX, 1);
  Maintain(10);
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(INT64_MAX));
}

TEST_F(LossTableTest, RowsAreRemovedFasterThanTheyAreAdded) {
  constexpr int kMachines = 20'000;
  const auto add = [&](int64_t seconds) {
    Transaction transaction = Transaction::Begin(database_).value();
    for (int i = 0; i < kMachines; ++i) {
      ASSERT_TRUE(table_.Add(i, kType, LossReason::kRingFull, 1, At(seconds)).ok());
    }
    ASSERT_TRUE(transaction.Commit().ok());
  };
  add(0);
  Maintain(10);
  add(86'411);
  Maintain(86'421);
  EXPECT_EQ(database_.QueryInt("SELECT count(*) FROM loss").value(), kMachines);
}

// A damaged file may have any numbers.
TEST_F(LossTableTest, UnknownReasonsAndMachinesAreRead) {
  Add(3, 0);
  Maintain(10);
  ASSERT_TRUE(database_.Execute("UPDATE loss SET reason = -1, machine = 7, aggregation = 99").ok());
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(3));
  EXPECT_THAT(reasons_, ElementsAre("other"));
}

}  // namespace
}  // namespace tributary::store
