#include "reducer/sqlite/loss_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  std::vector<std::string> types_;  // that were read
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
  EXPECT_EQ(types_.back(), kUndefinedType.name);
}

// A damaged file may have any numbers.
TEST_F(LossTableTest, UnknownReasonsAndMachinesAreRead) {
  Add(3, 0);
  Maintain(10);
  ASSERT_TRUE(database_.Execute("UPDATE loss SET reason = -1, machine = 7, aggregation = 99").ok());
  int64_t cursor = 0;
  EXPECT_THAT(Read(&cursor), ElementsAre(3));
}

}  // namespace
}  // namespace tributary::store
