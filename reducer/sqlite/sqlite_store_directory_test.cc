#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

using ::testing::HasSubstr;

TEST_F(SqliteStoreTest, OnlyOneReducerUsesADirectory) {
  auto second = SqliteStore::Open(directory_.path(), options_, clock_, metrics_);
  ASSERT_TRUE(absl::IsAlreadyExists(second.status()));
  EXPECT_THAT(std::string(second.status().message()), HasSubstr(std::to_string(getpid())));
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->OpenWriter(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->OpenWriter(1).status()));
}

TEST_F(SqliteStoreTest, AFileInPlaceOfTheDirectoryGivesOneClearError) {
  absl::Status status = SqliteStore::Open(directory_.path() + "/LOCK/below", {}, clock_, metrics_).status();
  ASSERT_FALSE(status.ok());
  EXPECT_THAT(std::string(status.message()), HasSubstr("create data directory"));
}

TEST_F(SqliteStoreTest, RefusesAFileOfANewerRelease) {
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  ASSERT_TRUE(writer->database().Execute("PRAGMA user_version = 99").ok());
  writer_.reset();
  store_.reset();
  store_ = SqliteStore::Open(directory_.path(), options_, clock_, metrics_).value();
  absl::Status status = store_->OpenWriter(0).status();
  ASSERT_TRUE(absl::IsFailedPrecondition(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("newer release"));
}

// A limit on the file's pages simulates a full disk. Nothing of the group is kept, neither on disk nor in memory. The
// same group can be committed once the disk has space.
TEST_F(SqliteStoreTest, AFullDiskKeepsNothingAndLosesNothing) {
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-10), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-10)));
  ASSERT_TRUE(writer->database().Execute("PRAGMA incremental_vacuum").ok()) << "what migrations left over";
  const int64_t pages = writer->database().QueryInt("PRAGMA page_count").value();
  ASSERT_TRUE(writer->database().QueryInt("PRAGMA max_page_count = " + std::to_string(pages)).ok());

  std::vector<RowBatch> group;
  for (uint64_t i = 0; i < 5; ++i) {
    for (uint64_t j = 0; j < 2000; ++j) {
      // Values and stacks do not compress, so the pages run out.
      const uint64_t noise = (i * 2000 + j) * 0x9e3779b97f4a7c15;
      collector.Add(At(-5 + static_cast<int64_t>(i)), collector.Thread(static_cast<int>(2 + j % 50), "t"),
                    collector.Stack({1, noise}), noise);
    }
    group.push_back(collector.Take(At(-4 + static_cast<int64_t>(i))));
  }
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_TRUE(absl::IsResourceExhausted(writer_->Commit(group).status()));
    EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);
    EXPECT_EQ(CountSamples(*Reader()), 1u);
  }
  EXPECT_EQ(writer_->FindSession(collector.info().session_id)->durable_sequence, 1u);

  ASSERT_TRUE(writer->database().QueryInt("PRAGMA max_page_count = 1000000").ok());
  auto outcomes = writer_->Commit(group);
  ASSERT_TRUE(outcomes.ok()) << outcomes.status();
  for (const ShardWriter::Outcome& outcome : *outcomes) EXPECT_FALSE(outcome.need_dictionary);
  EXPECT_EQ(outcomes->back().sequence, 6u);
  Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.stored, 10'001u);
  EXPECT_EQ(totals.captured, totals.stored);
  EXPECT_EQ(CountSamples(*Reader()), totals.stored);
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 51u);
}

// A request of an exporter may end within a chunk.
TEST_F(SqliteStoreTest, AScanContinuesWithinAChunk) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  for (int i = 0; i < 2; ++i) {
    for (uint64_t value = 1; value <= 5; ++value) collector.Add(At(-10), thread, collector.Stack({1}), value);
    CommitOne(collector.Take(At(-10)));
  }
  std::vector<uint64_t> values;
  std::vector<Cursor> begins;
  const auto take = [&](const SampleColumns& columns, const Cursor& begin) {
    values.insert(values.end(), columns.values.begin(), columns.values.end());
    begins.push_back(begin);
    return absl::OkStatus();
  };
  const Cursor within{.chunk = 0, .rows = 3, .samples = 3};
  EXPECT_EQ(Reader()->ScanCommitted(within, 100, take).value().next, (Cursor{.chunk = 2, .samples = 10}));
  EXPECT_EQ(values, (std::vector<uint64_t>{4, 5, 1, 2, 3, 4, 5}));
  EXPECT_EQ(begins, (std::vector<Cursor>{within, {.chunk = 1, .samples = 5}}));

  // The rest of the first chunk expires.
  auto* writer = static_cast<SqliteShardWriter*>(writer_.get());
  ASSERT_TRUE(writer->database().Execute("DELETE FROM sample_chunk WHERE id = 1").ok());
  values.clear();
  const CommittedScan scan = Reader()->ScanCommitted(within, 100, take).value();
  EXPECT_EQ(values, (std::vector<uint64_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(scan.expired_chunks, 1u);
  EXPECT_EQ(scan.expired_samples, 2u);
}

}  // namespace
}  // namespace tributary::store
