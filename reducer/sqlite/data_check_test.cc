#include "reducer/sqlite/data_check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "reducer/sqlite/rollouts_db.h"
#include "reducer/sqlite/sqlite_entity_store.h"
#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string ReadFile(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

void WriteFile(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

// A directory with every kind of row.
class DataCheckTest : public SqliteStoreTest {
 protected:
  DataCheckTest() {
    options_.machine_nodes_per_day_min = 64;  // so each added node is counted in the file
    Reopen();
    TestCollector collector("node-a");
    for (int round = 0; round < 20; ++round) {
      for (uint64_t i = 0; i < 100; ++i) {
        const uint64_t noise = i * static_cast<uint64_t>(round + 1) * 0x9e3779b97f4a7c15;
        collector.Add(At(-300 + round), collector.Thread(static_cast<int>(1 + i % 7), "t"),
                      collector.Stack({1, i % 10, noise}), 1 + noise % 1000);
      }
      collector.Add(At(-300 + round), collector.Event(ProcessEventKind::kExec, 7 + round, "gcc"));
      CommitOne(collector.Take(At(-300 + round)));
    }
    EXPECT_TRUE(writer_->Maintain(At(0)).ok());
    collector.Add(At(1), collector.Thread(1, "t"), collector.Stack({1, 2}));
    CommitOne(collector.Take(At(1)));
    EXPECT_TRUE(SqliteEntityStore::Open(directory_.path()).ok());
    EXPECT_TRUE(OpenRolloutsDb(directory_.path()).ok());
  }
  void Close() {
    writer_.reset();
    store_.reset();
  }
  // Returns the lines of one kind.
  std::vector<std::string> Check(Finding::Kind kind = Finding::Kind::kDamage) {
    std::vector<std::string> lines;
    const absl::Status status = CheckSqliteDirectory(directory_.path(), [&](const Finding& finding) {
      if (finding.kind == kind) lines.push_back(finding.file + ": " + finding.what + "; next: " + finding.advice);
    });
    EXPECT_TRUE(status.ok()) << status;
    return lines;
  }
  void Damage(const std::string& sql) {
    Database database = Database::Open(directory_.path() + "/shard-0.db", Database::Mode::kReadWrite).value();
    const absl::Status status = database.Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
};

TEST_F(DataCheckTest, FindsNothingInAnIntactDirectoryAndChangesNothing) {
  EXPECT_THAT(Check(), IsEmpty()) << "while a reducer uses it";
  EXPECT_THAT(Check(Finding::Kind::kNote), Contains(HasSubstr("a reducer uses the directory")));
  Close();
  const auto contents = [&] {
    std::vector<std::pair<std::string, std::string>> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory_.path())) {
      files.emplace_back(entry.path().string(), ReadFile(entry.path().string()));
    }
    std::sort(files.begin(), files.end());
    return files;
  };
  const auto before = contents();
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(Finding::Kind::kNewerRelease), IsEmpty()) << "also of the files whose schema is a number here";
  EXPECT_THAT(Check(Finding::Kind::kNote), ::testing::Not(Contains(HasSubstr("earlier release"))));
  EXPECT_EQ(contents(), before);
}

TEST_F(DataCheckTest, FindsEachKindOfDamage) {
  Close();
  const struct {
    const char* sql;
    const char* words;
  } kCases[] = {
      {"UPDATE sample_chunk SET columns = x'00' WHERE id = 3", "sample_chunk row 3: stored samples are corrupt"},
      {"UPDATE sample_chunk SET minute = minute + 1 WHERE id = 3",
       "sample_chunk row 3: its samples are of another minute"},
      {"UPDATE sample_chunk SET machine = 77 WHERE id = 3", "machine 77 does not exist"},
      {"UPDATE sample_chunk SET type = 77 WHERE id = 3", "sample type 77 does not exist"},
      {"UPDATE sample_chunk SET samples = 77 WHERE id = 3", "the number of its samples is wrong"},
      {"UPDATE sample_chunk SET samples_end = 77 WHERE id = 3", "the total of samples does not continue"},
      {"UPDATE process_chunk SET columns = x'00' WHERE id = 1", "process_chunk row 1: stored processes are corrupt"},
      {"UPDATE minute_sum SET columns = x'00' WHERE id = 1", "minute_sum row 1: stored columns are corrupt"},
      {"DELETE FROM minute_sum WHERE id = 1", "machine 1 type 1: the sums have 0 samples"},
      {"UPDATE event_chunk SET columns = x'00' WHERE id = 1", "event_chunk row 1: stored process events are corrupt"},
      {"UPDATE trie_chunk SET columns = x'00' WHERE id = 2", "trie_chunk row 2: rows 2 to 2 of day"},
      {"UPDATE trie_chunk SET nodes_end = 7 WHERE id = 2", "the numbers of its nodes do not continue"},
      {"DELETE FROM trie_chunk", "does not exist on its day"},
      {"UPDATE session SET machine = 77", "session row 1: machine 77 does not exist"},
      {"UPDATE session SET types = x'0505'", "session row 1: "},
      {"DELETE FROM string WHERE id > 1; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'string'", "text "},
      {"UPDATE executable SET id = 1 << 40 WHERE id = 1", "executable row 1099511627776: no data can refer to this id"},
      {"UPDATE watermark SET value = 5 WHERE name = 'closed_before'", "closed_before 5"},
      {"DROP INDEX session_machine", "the schema is damaged"},
  };
  const std::string path = directory_.path() + "/shard-0.db", intact = ReadFile(path);
  for (const auto& [sql, words] : kCases) {
    Damage(sql);
    EXPECT_THAT(Check(), Contains(AllOf(HasSubstr("shard-0.db: "), HasSubstr(words), HasSubstr("; next: ")))) << sql;
    WriteFile(path, intact);
  }
  EXPECT_THAT(Check(), IsEmpty());
  Damage("PRAGMA user_version = 99");
  EXPECT_THAT(Check(Finding::Kind::kNewerRelease), Contains(HasSubstr("schema version 99")));
}

// Limits and the order of expiry depend on these numbers, but no stored data.
TEST_F(DataCheckTest, WarnsOfWrongNumbersAboutMachines) {
  Close();
  EXPECT_THAT(Check(Finding::Kind::kWarning), IsEmpty());
  const struct {
    const char* sql;
    const char* words;
  } kCases[] = {
      {"UPDATE node_day SET data_bytes = data_bytes + 1", "bytes of samples, sums and events are recorded, but"},
      {"DELETE FROM event_chunk", "bytes of samples, sums and events are recorded, but"},
      {"UPDATE node_day SET charged_bytes = -1", "machine 1: a number is negative"},
      {"UPDATE node_day SET day = 1000000", "node_day day 1000000 machine 1: the day is impossible"},
      {"UPDATE node_day SET machine = 77", "machine 77: the machine does not exist"},
      {"UPDATE trie_share SET nodes = -1", "the number of nodes is impossible"},
      {"UPDATE trie_share SET nodes = 1000000", "the machines have added 1000000 nodes, but the trie has only"},
      {"UPDATE trie_share SET machine = 77", "machine 77: the machine does not exist"},
      {"UPDATE trie_share SET day = -1", "trie_share day -1 machine 1: the day is impossible"},
  };
  const std::string path = directory_.path() + "/shard-0.db", intact = ReadFile(path);
  for (const auto& [sql, words] : kCases) {
    Damage(sql);
    EXPECT_THAT(Check(Finding::Kind::kWarning), Contains(HasSubstr(words))) << sql;
    EXPECT_THAT(Check(), IsEmpty()) << sql;
    WriteFile(path, intact);
  }
  // An earlier release stored the data of these days, and had no numbers about them.
  Damage(
      "UPDATE node_day SET data_bytes = data_bytes / 2; INSERT INTO node_day SELECT day, 0, 0, 0, 0, 0 FROM node_day");
  EXPECT_THAT(Check(Finding::Kind::kWarning), IsEmpty());
  WriteFile(path, intact);
  Damage("DELETE FROM node_day; DELETE FROM trie_share");
  EXPECT_THAT(Check(Finding::Kind::kWarning), IsEmpty());
}

TEST_F(DataCheckTest, TheNumbersAboutMachinesStayRightWhileDataExpire) {
  options_.raw_age_ns = kNsPerDay / 4;
  options_.sum_age_ns = kNsPerDay / 2;
  options_.event_age_ns = kNsPerDay;
  Reopen();
  for (const int64_t at_s : {600, 3600, 6 * 3600, 7 * 3600, 13 * 3600, 25 * 3600, 26 * 3600}) {
    for (int i = 0; i < 10; ++i) EXPECT_TRUE(writer_->Maintain(At(at_s)).ok());
    EXPECT_THAT(Check(Finding::Kind::kWarning), IsEmpty()) << at_s;
    EXPECT_THAT(Check(), IsEmpty()) << at_s;
  }
}

// Texts of a node with too much data are removed before the data that refer to them.
TEST_F(DataCheckTest, TextsThatWereRemovedAreNoDamage) {
  Close();
  Damage("DELETE FROM string WHERE id > 1; DELETE FROM executable");
  EXPECT_THAT(Check(), IsEmpty());
}

// They have no chunk, but count in the totals of later chunks.
TEST_F(DataCheckTest, LateSamplesThatAreOnlyInSumsAreNoDamage) {
  TestCollector collector("node-c", 9);
  for (const int64_t at_s : {2 - 3 * 86'400, 2}) {
    collector.Add(At(at_s), collector.Thread(1, "t"), collector.Stack({1, 2}));
    CommitOne(collector.Take(At(2)));
  }
  EXPECT_THAT(Check(), IsEmpty());
}

// Columns have checksums, so a flip in them is always found.
TEST_F(DataCheckTest, EachFlippedByteOfColumnsIsFound) {
  Close();
  const std::string path = directory_.path() + "/shard-0.db", intact = ReadFile(path);
  for (const std::string_view table : {"sample_chunk", "process_chunk", "minute_sum", "event_chunk", "trie_chunk"}) {
    for (int i = 0; i < 8; ++i) {
      // Changes one bit of the byte at an eighth of the columns.
      Damage(
          fmt::format("UPDATE {0} SET columns = CAST(substr(columns, 1, length(columns) * {1} / 8) || "
                      "CASE WHEN substr(columns, length(columns) * {1} / 8 + 1, 1) = x'41' THEN x'42' ELSE x'41' END "
                      "|| substr(columns, length(columns) * {1} / 8 + 2) AS BLOB) WHERE id = 1",
                      table, i));
      EXPECT_THAT(Check(), Contains(HasSubstr(fmt::format("{} row 1: ", table)))) << i;
      WriteFile(path, intact);
    }
  }
}

TEST_F(DataCheckTest, ReportsWhatWasSetAside) {
  Close();
  Damage("UPDATE sample_chunk SET columns = x'00' WHERE id = 3; UPDATE trie_chunk SET columns = x'00' WHERE id = 2");
  Reopen();
  EXPECT_TRUE(Reader()->ScanSamples(kAlways, [](const SampleColumns&) { return absl::OkStatus(); }).ok());
  EXPECT_TRUE(Reader()->LoadTrie(DayOf(At(0))).ok());
  EXPECT_TRUE(writer_->Maintain(At(2)).ok());
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(Finding::Kind::kNote), Contains(HasSubstr("1 damaged rows and 1 damaged parts of tries")));
}

TEST_F(DataCheckTest, RefusesADirectoryWithoutAStore) {
  const TestDirectory empty;
  const auto ignore = [](const Finding&) {};
  EXPECT_TRUE(absl::IsNotFound(CheckSqliteDirectory(empty.path(), ignore)));
  EXPECT_TRUE(absl::IsNotFound(CheckSqliteDirectory(empty.path() + "/none", ignore)));
}

// Each flip is found, or the reducer can use the file: it commits a batch, and answers all queries.
TEST_F(DataCheckTest, EachFlippedByteIsFoundOrHarmless) {
  Close();
  const std::string path = directory_.path() + "/shard-0.db", intact = ReadFile(path);
  std::mt19937 random(20'260'726);
  int found = 0;
  constexpr int kFlips = 120;
  for (int i = 0; i < kFlips; ++i) {
    std::string damaged = intact;
    const size_t at = random() % damaged.size();
    damaged[at] = static_cast<char>(static_cast<uint8_t>(damaged[at]) ^ (1u << random() % 8));
    WriteFile(path, damaged);
    SCOPED_TRACE(fmt::format("flip {} at byte {}", i, at));
    if (!Check().empty() || !Check(Finding::Kind::kNewerRelease).empty()) {
      ++found;
      continue;
    }
    auto store = SqliteStore::Open(directory_.path(), options_, clock_, metrics_);
    ASSERT_TRUE(store.ok()) << store.status();
    auto writer = (*store)->OpenWriter(0);
    ASSERT_TRUE(writer.ok()) << writer.status();
    TestCollector collector("node-b", 9);
    collector.Add(At(2), collector.Thread(1, "t"), collector.Stack({1, 2, 3}));
    const RowBatch batch = collector.Take(At(2));
    EXPECT_TRUE((*writer)->Commit({&batch, 1}).ok());
    const auto reader = (*store)->OpenReader(0).value();
    EXPECT_TRUE(reader->Nodes().ok());
    EXPECT_TRUE(reader->ScanSamples(kAlways, [](const SampleColumns&) { return absl::OkStatus(); }).ok());
    EXPECT_TRUE(reader->LoadTrie(DayOf(At(0))).ok());
    EXPECT_TRUE(reader->Processes(kAlways, nullptr).ok());
    writer->reset();
    for (const char* suffix : {"-wal", "-shm"}) unlink((path + suffix).c_str());
  }
  EXPECT_GT(found, kFlips / 10) << "the rest are texts, numbers and free space";
}

}  // namespace
}  // namespace tributary::store
