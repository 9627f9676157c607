#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

#include "reducer/sqlite/history_share_testing.h"

namespace tributary::store {
namespace {

TEST_F(HistoryShareTest, NamesOfOneNodeDoNotRemoveSamplesOfAnother) {
  Open(16u << 20);
  CommitHonest();
  Maintain();
  for (int batch = 0; batch < 6; ++batch) {
    CommitNames(hostile_, 1000, 4000);
    clock_.Advance(5 * kNsPerSecond);
    Maintain(1);
  }
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(SamplesOf("honest"), uint64_t{kMinutes} * kSamplesPerMinute);
  EXPECT_LT(UsedBytes(), 16u << 20);
}

// The counts in node_day are those of the rows, whatever was removed.
TEST_F(HistoryShareTest, CountsOfNodesEqualTheirRows) {
  options_.raw_age_ns = 2 * 60 * kNsPerMinute;
  Open(1u << 30);
  CommitHonest();
  CommitNames(hostile_, 500, 100);
  honest_.Add(clock_.Unix(), honest_.Event(ProcessEventKind::kStart, 7, "sh"));
  CommitOf(honest_);
  honest_.Add(clock_.Unix(), honest_.Event(ProcessEventKind::kExit, 7, "sh"));
  CommitOf(honest_);
  for (int i = 0; i < 2; ++i) {
    Maintain();
    for (const std::string_view machine : {"1", "2"}) {
      EXPECT_EQ(
          Query(fmt::format("SELECT sum(data_bytes) FROM node_day WHERE machine = {}", machine)),
          Query(fmt::format("SELECT (SELECT coalesce(sum(length(columns) + 56), 0) FROM sample_chunk WHERE machine = "
                            "{0}) + (SELECT coalesce(sum(length(columns) + 56), 0) FROM minute_sum WHERE machine = "
                            "{0}) + (SELECT coalesce(sum(length(columns) + 56), 0) FROM event_chunk WHERE machine = "
                            "{0})",
                            machine)))
          << machine;
    }
    clock_.Advance(3 * 60 * kNsPerMinute);  // joins events, removes samples
  }
  EXPECT_EQ(Query("SELECT count(*) FROM sample_chunk"), 0);
  EXPECT_EQ(Query("SELECT count(*) FROM event_chunk"), 1);
  const int64_t definitions = Query("SELECT sum(definition_bytes) FROM node_day WHERE machine = 2");
  EXPECT_GT(definitions, 500 * 100);
  EXPECT_LT(definitions, 500 * 600);
}

TEST_F(HistoryShareTest, ANodeOverItsQuotaKeepsItsSamples) {
  options_.node_definition_bytes_per_day = 64u << 10;
  Open(1u << 30);
  CommitNames(hostile_, 1000, 100);
  const int64_t definitions = Query("SELECT sum(charged_bytes) FROM node_day");
  EXPECT_LT(definitions, 90'000) << "the quota, and the pieces of this transaction";
  EXPECT_GT(definitions, 64 << 10);
  EXPECT_EQ(SamplesOf("hostile"), 1000u);
  const Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.captured, totals.stored + totals.lost);
  EXPECT_GT(Metric("tributary_reducer_history_quota_definitions_total"), 400u);
  EXPECT_EQ(refusals_.Of("hostile").at("history_quota"), Metric("tributary_reducer_history_quota_definitions_total"));

  // A restart does not reset the quota. Further processes become one, and known names stay.
  Reopen();
  TestCollector again("hostile", 3);
  CommitNames(again, 1000, 100);
  EXPECT_LT(Query("SELECT sum(charged_bytes) FROM node_day"), definitions + 2'000);
  EXPECT_EQ(SamplesOf("hostile"), 2000u);
  EXPECT_EQ(Metric("tributary_reducer_history_quota_samples_total"), 1000u);
  size_t over_quota = 0;
  for (const ProcessRow& row : Processes()) over_quota += row.pid == Pid{0} && row.comm == "[history quota]";
  EXPECT_EQ(over_quota, 1u);

  // Other nodes have quotas of their own.
  CommitHonest();
  EXPECT_EQ(SamplesOf("honest"), uint64_t{kMinutes} * kSamplesPerMinute);
  EXPECT_EQ(Metric("tributary_reducer_history_quota_samples_total"), 1000u);

  // The next day has a new quota.
  clock_.Advance(kNsPerDay);
  CommitNames(again, 10, 100);
  EXPECT_EQ(Metric("tributary_reducer_history_quota_samples_total"), 1000u);
  EXPECT_EQ(Query("SELECT count(*) FROM string WHERE length(text) = 100 AND last_day = (SELECT max(last_day) FROM "
                  "string)"),
            10);
}

TEST_F(HistoryShareTest, BytesThatANodeSendsRaiseItsQuota) {
  options_.node_definition_bytes_per_day = 1u << 20;
  Open(1u << 30);
  for (int i = 0; i < 1000; ++i) {
    hostile_.Add(clock_.Unix(), hostile_.Thread(1 + i, fmt::format("{:02000}", i)), hostile_.Stack({7}));
  }
  RowBatch batch = hostile_.Take(clock_.Unix());
  batch.wire_bytes = 2u << 20;
  ASSERT_FALSE(CommitOne(batch).need_dictionary);
  EXPECT_EQ(Metric("tributary_reducer_history_quota_definitions_total"), 0u);
  EXPECT_EQ(Query("SELECT received_bytes FROM node_day"), 2 << 20);
}

// A node that builds software starts 100 processes a second. It sends about 10 bytes for each of them.
TEST_F(HistoryShareTest, ABuilderOfSoftwareStaysBelowItsQuota) {
  Open(1u << 30);
  TestCollector builder("builder", 4);
  constexpr int kPerBatch = 500, kSeconds = 3600;
  std::mt19937_64 random(1);
  int pid = 2;
  auto thread = [&](int number) {
    Dictionary& dictionary = builder.dictionary();
    Process process;
    process.comm = dictionary.InternString(fmt::format("cc{}", number % 40));
    process.executable_path = dictionary.InternString(fmt::format("/usr/bin/cc{}", number % 40));
    process.container_id = dictionary.InternString(fmt::format("container{}", number % 8));
    process.cgroup_path = dictionary.InternString(fmt::format("/kubepods/container{}", number % 8));
    process.key = {Pid{pid += 1 + static_cast<int>(random() % 3)},
                   clock_.Unix().value + int64_t(random() % kNsPerSecond), 1};
    process.parent = Pid{pid - static_cast<int>(random() % 200)};
    return dictionary.InternThread({dictionary.InternProcess(process), Tid{pid}, process.comm});
  };
  for (int second = 0; second < kSeconds; second += 5) {
    clock_.Advance(5 * kNsPerSecond);
    if (second % 120 == 0) builder = TestCollector("builder", static_cast<uint8_t>(5 + second / 120));
    for (int i = 0; i < kPerBatch; ++i) {
      builder.Add(clock_.Unix(), thread(static_cast<int>(random() % 320)), builder.Stack({1, 2}));
    }
    CommitOf(builder);
  }
  const int64_t charged = Query("SELECT sum(charged_bytes) FROM node_day");
  const int64_t processes = int64_t{kSeconds} / 5 * kPerBatch;
  RecordProperty("bytes_per_process", std::to_string(static_cast<double>(charged) / static_cast<double>(processes)));
  EXPECT_LT(charged, processes * 2 * 10);
}

// An executable belongs to all nodes. A node at its quota must not give it the name of what is over the quota.
TEST_F(HistoryShareTest, ANodeAtItsQuotaDoesNotRenameExecutables) {
  options_.node_definition_bytes_per_day = 64u << 10;
  Open(1u << 30);
  AddExecutables(hostile_, 200);
  CommitOf(hostile_);
  const std::vector<ExecutableRow> executables = Reader()->Executables().value();
  EXPECT_GT(executables.size(), 10u);
  EXPECT_LT(executables.size(), 100u);
  for (const ExecutableRow& row : executables) EXPECT_NE(row.path, "[history quota]");
}

// Both nodes use the names. The removal of the hostile node's data must not remove them.
TEST_F(HistoryShareTest, SharedNamesStayWhenANodeIsOverItsShare) {
  Open(16u << 20);
  hostile_.Add(clock_.Unix(), hostile_.Thread(1, "worker"), hostile_.Stack({1}));
  CommitOf(hostile_);
  CommitHonest();
  for (int batch = 0; batch < 6; ++batch) CommitNames(hostile_, 1000, 4000);
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  size_t workers = 0;
  for (const ProcessRow& row : Processes()) workers += row.node_id == "honest" && row.comm == "worker";
  EXPECT_GE(workers, 5u);
  EXPECT_EQ(Query("SELECT count(*) FROM string WHERE text = CAST('worker' AS BLOB)"), 1);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{kMinutes} * kSamplesPerMinute);
  EXPECT_GT(Metric("tributary_reducer_expired_over_share_rows_total"), 0u);

  // A removed name comes back with its next sample, under another id.
  hostile_.Add(clock_.Unix(), hostile_.Thread(next_name_ - 1, fmt::format("{:04000}", next_name_ - 1)),
               hostile_.Stack({7}));
  CommitOf(hostile_);
  EXPECT_EQ(Query("SELECT max(id) FROM string"), Query("SELECT seq FROM sqlite_sequence WHERE name = 'string'"));
}

// Definitions that cannot be removed must not cost samples. Here, texts that an earlier release stored fill the file.
TEST_F(HistoryShareTest, NoSampleIsRemovedIfThatFreesNothing) {
  Open(4u << 20);
  CommitHonest();
  Maintain();
  ASSERT_TRUE(Shard()
                  .Execute(fmt::format("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 3000) "
                                       "INSERT INTO string (hash, last_day, machine, text) SELECT i, {0}, 0, "
                                       "zeroblob(2000) FROM n; INSERT INTO node_day VALUES ({0}, 0, 0, 6000000, 0, 0)",
                                       DayOf(clock_.Unix()).value))
                  .ok());
  clock_.Advance(10 * kNsPerMinute);
  Maintain();
  EXPECT_GT(UsedBytes(), options_.bytes_max);
  EXPECT_EQ(SamplesOf("honest"), uint64_t{kMinutes} * kSamplesPerMinute);
  EXPECT_GT(Metric("tributary_reducer_expiry_stalls_total"), 0u);
}

}  // namespace
}  // namespace tributary::store
