#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "reducer/sqlite/history_share_testing.h"
#include "reducer/sqlite/node_expiry.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

class NodeExpiryTest : public HistoryShareTest {
 protected:
  // Adds rows of samples that cannot be decoded, because these tests only remove them.
  void AddRows(int64_t machine, int64_t minute, int rows, int bytes) {
    ASSERT_TRUE(
        Shard()
            .Execute(fmt::format(
                "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {2}) "
                "INSERT INTO sample_chunk (minute, machine, type, samples, raw_bytes, columns, samples_end) "
                "SELECT {1}, {0}, 1, 1, 0, zeroblob({3}), 0 FROM n; INSERT INTO node_day VALUES ({4}, {0}, "
                "{2} * ({3} + 56), 0, 0, 0) ON CONFLICT DO UPDATE SET data_bytes = data_bytes + {2} * ({3} + 56)",
                machine, minute, rows, bytes, DayOfMinute(minute).value))
            .ok());
  }
  // Stores a sample of each node, closes its minute, and returns the minute.
  int64_t Begin() {
    CommitHonest(1);
    CommitNames(hostile_, 1, 10);
    const int64_t minute = MinuteOf(clock_.Unix());
    clock_.Advance(10 * kNsPerMinute);
    Maintain(20);
    return minute;
  }
  int64_t RowsOf(int64_t machine) {
    return Query(fmt::format("SELECT count(*) FROM sample_chunk WHERE machine = {}", machine));
  }
  // Makes the shard larger than its limit, and the machine larger than its share, whatever is removed.
  void Overfill(int64_t machine) {
    ASSERT_TRUE(Shard()
                    .Execute(fmt::format("CREATE TABLE filler AS SELECT zeroblob(8000000) AS bytes; "
                                         "INSERT INTO node_day VALUES (1, {}, 99000000, 0, 0, 0)",
                                         machine))
                    .ok());
  }
  int64_t Machine(std::string_view node_id) {
    return Query(fmt::format("SELECT id FROM machine WHERE node_id = CAST('{}' AS BLOB)", node_id));
  }
};

// A node can store more rows in a second than a run removes from a shard that is a little over its limit.
TEST_F(NodeExpiryTest, RemovesMoreRowsPerRunTheFurtherTheShardIsOverItsLimit) {
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  for (int i = 0; i < 60; ++i) AddRows(hostile, minute - i, 1'000, 100);
  Maintain(1);
  EXPECT_LT(RowsOf(hostile), 60'000 - 4 * NodeExpiry::kRowsPerRun);
}

TEST_F(NodeExpiryTest, ANodeThatOverfillsTheShardHasASmallQuota) {
  options_.node_definition_bytes_per_day = 1u << 20;
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  AddRows(hostile, minute, 1'500, 4'000);
  Maintain(1);
  CommitNames(hostile_, 200, 1'000);
  EXPECT_LT(Query(fmt::format("SELECT charged_bytes FROM node_day WHERE machine = {}", hostile)), 160'000);
  EXPECT_GT(refusals_.Of("hostile").at("history_quota"), 50u);

  CommitNames(honest_, 200, 1'000);
  EXPECT_FALSE(refusals_.Of("honest").contains("history_quota"));

  Maintain(20);
  EXPECT_LT(UsedBytes(), 4u << 20);
  CommitNames(hostile_, 200, 1'000);
  EXPECT_GT(Query(fmt::format("SELECT charged_bytes FROM node_day WHERE machine = {}", hostile)), 200'000);
}

// The expiry has passed the minute of these data already.
TEST_F(NodeExpiryTest, RemovesDataThatCameLate) {
  options_.raw_age_ns = options_.sum_age_ns = 7 * kNsPerDay;
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  clock_.Advance(2 * kNsPerDay);
  Maintain(5);
  AddRows(hostile, minute + 60, 3'000, 2'000);
  Maintain(5);
  ASSERT_LT(RowsOf(hostile), 3'000);
  const int64_t left = RowsOf(hostile);
  AddRows(hostile, minute, 3'000, 2'000);
  Maintain(200);
  EXPECT_LT(RowsOf(hostile), left + 10);
  EXPECT_EQ(RowsOf(Machine("honest")), 1);
  EXPECT_LE(UsedBytes(), 4u << 20);
}

TEST_F(NodeExpiryTest, RemovesTheSameRowsAgainAfterAnError) {
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  AddRows(hostile, minute, 1'000, 1'000);
  AddRows(hostile, minute + 1, 3'000, 2'000);
  ASSERT_TRUE(Shard()
                  .Execute(fmt::format("CREATE TRIGGER refuse BEFORE DELETE ON sample_chunk WHEN old.minute = {} BEGIN "
                                       "SELECT RAISE(ABORT, 'no'); END",
                                       minute + 1))
                  .ok());
  EXPECT_FALSE(writer_->Maintain(clock_.Unix()).ok());
  ASSERT_TRUE(Shard().Execute("DROP TRIGGER refuse").ok());
  Maintain(1);
  EXPECT_EQ(Query(fmt::format("SELECT count(*) FROM sample_chunk WHERE machine = {} AND minute = {}", hostile, minute)),
            0);
}

// Two nodes send the same texts, so no removal of one node's data can remove them.
TEST_F(NodeExpiryTest, TextsOfTwoNodesStillCountForTheFirst) {
  Open(16u << 20);
  CommitHonest(60);
  TestCollector accomplice("accomplice", 3);
  for (int batch = 0; batch < 5; ++batch) {
    const int first = next_name_;
    CommitNames(hostile_, 1000, 4000);
    next_name_ = first;
    CommitNames(accomplice, 1000, 4000);
  }
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_GT(Query(fmt::format("SELECT sum(definition_bytes) FROM node_day WHERE machine = {}", Machine("hostile"))),
            19'000'000);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{60} * kSamplesPerMinute);
}

// A text counts for the last day on which it was used, so it counts as long as it is stored.
TEST_F(NodeExpiryTest, TextsThatAreUsedEveryDayStayCharged) {
  Open(1u << 30);
  for (int day = 0; day < 3; ++day) {
    next_name_ = 1;
    CommitNames(hostile_, 100, 1'000);
    const int64_t definitions = Query(fmt::format(
        "SELECT definition_bytes FROM node_day WHERE machine = {} ORDER BY day DESC LIMIT 1", Machine("hostile")));
    EXPECT_GT(definitions, 100'000) << day;
    EXPECT_LT(definitions, 150'000) << day;
    clock_.Advance(kNsPerDay);
  }
}

// Each session has a row, which stays longer than its samples.
TEST_F(NodeExpiryTest, SessionsOfANodeAreCharged) {
  options_.node_definition_bytes_per_day = 64u << 10;
  Open(1u << 30);
  CommitHonest(1);
  for (int hour = 0; hour < 4; ++hour) {
    std::vector<RowBatch> group;
    for (int i = 0; i < 300; ++i) {
      TestCollector session("hostile", 0);
      session.Add(clock_.Unix(), session.Thread(1, "worker"), session.Stack({7}));
      group.push_back(session.Take(clock_.Unix()));
      group.back().source.id = fmt::format("{:016}", next_name_++);
    }
    ASSERT_TRUE(writer_->Commit(group).ok());
    clock_.Advance(2 * 60 * kNsPerMinute);
  }
  const int64_t rows = Query(fmt::format("SELECT count(*) FROM session WHERE machine = {}", Machine("hostile")));
  EXPECT_LT(rows, 700);
  EXPECT_GT(rows, 200);
  EXPECT_GT(refusals_.Of("hostile").at("history_quota"), 500u);
  EXPECT_EQ(SamplesOf("hostile"), 1'200u);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{kSamplesPerMinute});
}

// A session can report others as ended, and each of them needs a row.
TEST_F(NodeExpiryTest, UnknownEndedSessionsNeedRoomInTheQuota) {
  options_.node_definition_bytes_per_day = 32u << 10;
  Open(1u << 30);
  for (int i = 0; i < 40; ++i) {
    TestCollector session("hostile", 0);
    session.Add(clock_.Unix(), session.Thread(1, "worker"), session.Stack({7}));
    std::vector<RowBatch> group;
    for (int j = 0; j < 40; ++j) {
      group.push_back(session.Take(clock_.Unix()));
      group.back().source.id = fmt::format("{:016}", i);
      const std::string id = fmt::format("{:08}{:08}", i, j);
      std::copy(id.begin(), id.end(), group.back().closes.emplace_back().session_id.begin());
    }
    ASSERT_TRUE(writer_->Commit(group).ok());
  }
  EXPECT_LT(Query("SELECT count(*) FROM session"), 300);
  EXPECT_GT(Metric("tributary_reducer_closings_refused_total"), 1'200u);
}

// A row of a session was removed while the session was in memory. The next new session gets the same rowid.
TEST_F(NodeExpiryTest, ASessionWithoutARowWritesNoOther) {
  Open(1u << 30);
  CommitNames(hostile_, 1, 10);
  CommitNames(hostile_, 1, 10);
  ASSERT_TRUE(Shard().Execute("DELETE FROM session").ok());
  CommitHonest(1);
  CommitNames(hostile_, 1, 10);
  EXPECT_EQ(Query("SELECT count(*) FROM session"), 2);
  EXPECT_EQ(writer_->FindSession(honest_.info().session_id)->durable_sequence, 1u);
  Reopen();
  EXPECT_EQ(writer_->FindSession(honest_.info().session_id)->durable_sequence, 1u);
  EXPECT_EQ(writer_->FindSession(hostile_.info().session_id)->durable_sequence, 3u);
}

// A machine without a session would lose its row, and its data their node.
TEST_F(NodeExpiryTest, TheNewestSessionOfANodeStays) {
  options_.raw_age_ns = options_.sum_age_ns = 7 * kNsPerDay;
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  TestCollector earlier("hostile", 9);
  CommitNames(earlier, 1, 10);
  CommitNames(hostile_, 1, 10);
  clock_.Advance(2 * kNsPerDay);
  AddRows(hostile, minute, 3'000, 2'000);
  Overfill(hostile);
  for (int i = 0; i < 5; ++i) {
    Maintain(20);
    clock_.Advance(kNsPerMinute);
  }
  EXPECT_EQ(Query(fmt::format("SELECT count(*) FROM session WHERE machine = {}", hostile)), 1);
  EXPECT_EQ(Machine("hostile"), hostile);
}

// Samples of the last minutes stay, and refer to names and executables.
TEST_F(NodeExpiryTest, NamesOfTodayStayUnlessTheyAreVeryMany) {
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile");
  CommitNames(hostile_, 100, 1'000);
  AddRows(hostile, minute, 3'000, 2'000);
  Overfill(hostile);
  Maintain(20);
  EXPECT_EQ(RowsOf(hostile), 1);
  EXPECT_GE(Query("SELECT count(*) FROM string WHERE length(text) = 1000"), 100);
}

// An executable and its path count for the last day on which they were used.
TEST_F(NodeExpiryTest, ExecutablesThatAreUsedEveryDayStayCharged) {
  Open(1u << 30);
  for (uint8_t day = 0; day < 3; ++day) {
    TestCollector collector("hostile", static_cast<uint8_t>(10 + day));
    AddExecutables(collector, 50);
    CommitOf(collector);
    const int64_t definitions = Query(fmt::format(
        "SELECT definition_bytes FROM node_day WHERE machine = {} ORDER BY day DESC LIMIT 1", Machine("hostile")));
    EXPECT_GT(definitions, 100'000) << int{day};
    EXPECT_LT(definitions, 120'000) << int{day};
    clock_.Advance(kNsPerDay);
  }
}

// The node that overfills the shard has only data of the last minutes. They go when these minutes are closed.
TEST_F(NodeExpiryTest, DataOfTheLastMinutesDoNotRemoveOldDataOfOthers) {
  Open(4u << 20);
  Begin();
  CommitHonest(60);
  clock_.Advance(10 * kNsPerMinute);
  Maintain(40);
  const int64_t hostile = Machine("hostile");
  AddRows(hostile, MinuteOf(clock_.Unix()), 3'000, 2'000);
  Maintain(40);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{61} * kSamplesPerMinute);
  clock_.Advance(10 * kNsPerMinute);
  for (int i = 0; i < 20; ++i) writer_->Maintain(clock_.Unix()).IgnoreError();  // the rows cannot be summed up
  EXPECT_LT(RowsOf(hostile), 2'000);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{61} * kSamplesPerMinute);
}

// The list of nodes is older than the new data of the hostile node.
TEST_F(NodeExpiryTest, ANodeThatGoesOnComesBeforeSmallerNodes) {
  Open(4u << 20);
  const int64_t minute = Begin(), hostile = Machine("hostile"), honest = Machine("honest");
  for (int i = 0; i < 50; ++i) AddRows(honest, minute - i, 82, 400);
  for (int i = 0; i < 100; ++i) AddRows(hostile, minute - i, 110, 400);
  Maintain(1);
  ASSERT_LT(RowsOf(hostile), 8'000);
  for (int i = 0; i < 100; ++i) AddRows(hostile, minute - i, 110, 400);
  Maintain(40);
  EXPECT_LT(RowsOf(hostile), 8'000);
  EXPECT_EQ(RowsOf(honest), 50 * 82 + 1);
  EXPECT_LE(UsedBytes(), 4u << 20);
}

// The definitions of today of another node take most of the shard, and cannot be removed.
TEST_F(NodeExpiryTest, ANodeALittleOverItsShareMayUseHalfOfTheShard) {
  Open(4u << 20);
  const int64_t minute = Begin(), honest = Machine("honest");
  for (int i = 0; i < 50; ++i) AddRows(honest, minute - i, 36, 800);
  ASSERT_TRUE(Shard()
                  .Execute(fmt::format("INSERT INTO node_day VALUES ({}, 100, 0, 3000000, 0, 0); "
                                       "CREATE TABLE filler AS SELECT zeroblob(2600000) AS x",
                                       DayOf(clock_.Unix()).value))
                  .ok());
  Maintain(10);
  EXPECT_GT(UsedBytes(), 4u << 20);
  EXPECT_EQ(RowsOf(honest), 50 * 36 + 1);

  for (int i = 0; i < 10; ++i) AddRows(honest, minute - i, 150, 800);
  Maintain(40);
  EXPECT_LT(RowsOf(honest), 50 * 36 + 1'000);
  EXPECT_GT(RowsOf(honest), 1'500);
}

// Each of these nodes is over its share, and stores a little more in each minute. Most of their bytes cannot be
// removed.
TEST_F(NodeExpiryTest, NodesThatGiveUpLittleDoNotKeepAllOtherData) {
  Open(2u << 20);
  Begin();
  CommitHonest(120);
  clock_.Advance(10 * kNsPerMinute);
  Maintain(40);
  ASSERT_TRUE(
      Shard()
          .Execute(fmt::format("WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n WHERE i < 160) "
                               "INSERT INTO node_day SELECT {}, i, 0, 100000, 0, 0 FROM n; CREATE TABLE filler "
                               "AS SELECT zeroblob(3000000) AS x",
                               DayOf(clock_.Unix()).value))
          .ok());
  const int64_t sums = Query("SELECT count(*) FROM minute_sum");
  for (int i = 0; i < 120; ++i) {
    clock_.Advance(kNsPerSecond);
    for (int node = 100; node <= 160 && i % 20 == 0; ++node)
      AddRows(node, MinuteOf(clock_.Unix()) - 10 - i / 20, 1, 50);
    Maintain(1);
  }
  EXPECT_LT(Query("SELECT count(*) FROM minute_sum"), sums) << "the oldest hours of all nodes are removed, too";
}

}  // namespace
}  // namespace tributary::store
