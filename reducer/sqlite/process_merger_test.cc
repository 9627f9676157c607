#include "reducer/sqlite/process_merger.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "base/directory_testing.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/sqlite_steps_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
const Slot kClosed{SlotOf(kNow).value - 10};
const Slot kNext{kClosed.value + 1};
constexpr int64_t kMachine = 1, kOther = 2;

class ProcessMergerTest : public ::testing::Test {
 protected:
  ProcessMergerTest() : database_(OpenShardForWriting(directory_.path() + "/shard.db").value()) {
    put_ = database_
               .Prepare(
                   "INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns, machine) VALUES (?, ?, "
                   "?, ?, ?)")
               .value();
    ledger_ = NodeLedger::Prepare(database_, 1u << 30).value();
    Restart();
  }
  void Restart() { merger_ = ProcessMerger::Prepare(database_, *ledger_, &damage_).value(); }
  void Add(Slot first, Slot last, uint32_t no, int64_t machine = kMachine) {
    StoredProcesses rows;
    rows.processes.push_back({.no = no, .machine = machine, .pid = ++pid_});
    rows.threads.push_back({.no = no, .process = no, .tid = pid_});
    const PackedColumns packed = PackColumns(EncodeProcesses(rows));
    ASSERT_TRUE(put_.Bind(first.value, last.value, packed.raw_bytes, packed.bytes, machine).Run().ok());
    ledger_->SetToday(DayOf(last));
    ledger_->AddDefinitions(machine, packed.bytes.size() + NodeLedger::kRowBytes);
  }
  void AddMany(Slot slot, int pieces, int64_t machine = kMachine) {
    Transaction transaction = Transaction::Begin(database_).value();
    for (int i = 0; i < pieces; ++i) Add(slot, slot, static_cast<uint32_t>(i % 1000), machine);
    ASSERT_TRUE(ledger_->Commit(transaction).ok());
  }
  void RunToEnd(int calls = 20) {
    for (int i = 0; i < calls; ++i) {
      const absl::Status status = merger_->Run(kNow);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t Query(const std::string& sql) { return database_.QueryInt(sql).value(); }
  int64_t Count(int64_t machine = kMachine) {
    return Query(fmt::format("SELECT count(*) FROM process_chunk WHERE machine = {}", machine));
  }
  // The pids of the machine's descriptions: the valid ones first.
  std::vector<int32_t> Visited(Slot first, Slot last, int64_t machine = kMachine) {
    std::vector<int32_t> visited;
    EXPECT_TRUE(VisitProcesses(database_, first, last, {}, PieceParts::kProcessesAndThreads, nullptr,
                               [&](const StoredProcesses& piece, Slot) {
                                 EXPECT_EQ(piece.threads.size(), piece.processes.size());
                                 for (size_t i = piece.processes.size(); i-- > 0;) {
                                   EXPECT_EQ(piece.threads[i].process, piece.processes[i].no);
                                   EXPECT_EQ(piece.threads[i].tid, piece.processes[i].pid);
                                   if (piece.processes[i].machine == machine) visited.push_back(piece.processes[i].pid);
                                 }
                                 return absl::OkStatus();
                               })
                    .ok());
    return visited;
  }
  void ExpectLedgerEqualsPieces() {
    EXPECT_EQ(Query("SELECT count(*) FROM (SELECT last_slot / 144 AS day, machine, sum(length(columns) + 56) AS bytes "
                    "FROM process_chunk GROUP BY 1, 2) LEFT JOIN node_day USING (day, machine) WHERE definition_bytes "
                    "IS NOT bytes"),
              0);
  }

  SqliteSteps steps_;
  const TestDirectory directory_;
  Database database_;
  Statement put_;
  std::unique_ptr<NodeLedger> ledger_;
  DamageReports damage_;
  std::unique_ptr<ProcessMerger> merger_;
  int32_t pid_ = 0;
};

TEST_F(ProcessMergerTest, JoinsTheCommitsOfASlotAndKeepsTheOrder) {
  AddMany(kClosed, 3000);
  Add(kNext, kNext, 1);
  Add(kClosed, kClosed, 2);
  Add(kClosed, kClosed, 3);
  Add(Slot{kClosed.value - 3}, kClosed, 4);
  Add(Slot{kClosed.value - 3}, kClosed, 5);
  AddMany(kNext, 100);
  const std::vector<int32_t> before = Visited(kClosed, kNext), of_next = Visited(kNext, kNext);
  ASSERT_EQ(before.size(), 3105u);
  RunToEnd();
  EXPECT_EQ(Count(), 6) << "many, one, two, two of several slots, many";
  EXPECT_EQ(Visited(kClosed, kNext), before);
  EXPECT_EQ(Visited(kNext, kNext), of_next);
  ExpectLedgerEqualsPieces();
}

TEST_F(ProcessMergerTest, JoinsEachMachineWhateverLiesBetween) {
  constexpr int kPieces = 1000;
  Transaction transaction = Transaction::Begin(database_).value();
  for (int i = 0; i < kPieces; ++i) {
    Add(kClosed, kClosed, 1, kMachine);
    Add(i < kPieces / 2 ? kClosed : kNext, i < kPieces / 2 ? kClosed : kNext, 2, kOther);
  }
  ASSERT_TRUE(ledger_->Commit(transaction).ok());
  const std::vector<int32_t> before = Visited(kClosed, kNext), of_other = Visited(kClosed, kNext, kOther);
  ExpectLedgerEqualsPieces();
  RunToEnd();
  EXPECT_EQ(Count(kMachine), 1);
  EXPECT_EQ(Count(kOther), 2);
  EXPECT_EQ(Query(fmt::format("SELECT max(id) FROM process_chunk WHERE machine = {}", kMachine)), 2 * kPieces - 1);
  EXPECT_EQ(Visited(kClosed, kNext), before);
  EXPECT_EQ(Visited(kClosed, kNext, kOther), of_other);
  ExpectLedgerEqualsPieces();
}

// The pieces of one machine are far apart.
TEST_F(ProcessMergerTest, JoinsThePiecesOfManyMachinesInSeveralRuns) {
  constexpr int kMachines = 1500, kPieces = 10;
  Transaction transaction = Transaction::Begin(database_).value();
  for (int i = 0; i < kPieces; ++i) {
    for (int machine = 1; machine <= kMachines; ++machine) Add(kClosed, kClosed, 1, machine);
  }
  ASSERT_TRUE(ledger_->Commit(transaction).ok());
  RunToEnd();
  EXPECT_LE(Query("SELECT count(*) FROM process_chunk"), kMachines + 4) << "the end of a run may divide a piece";
  ExpectLedgerEqualsPieces();
}

TEST_F(ProcessMergerTest, PiecesOfEarlierReleasesStay) {
  AddMany(kClosed, 10, 0);
  AddMany(kClosed, 10);
  RunToEnd();
  EXPECT_EQ(Count(0), 10);
  EXPECT_EQ(Count(), 1);
}

TEST_F(ProcessMergerTest, ASlotIsJoinedAnHourAfterItsEnd) {
  const Slot open{SlotOf(kNow).value - 6};
  AddMany(kClosed, 10);
  AddMany(open, 10);
  AddMany(kClosed, 10);
  RunToEnd();
  EXPECT_EQ(Count(), 1 + 20) << "the pieces after an open slot wait";
  EXPECT_TRUE(merger_->Run(UnixNs{kNow.value + 600 * kNsPerSecond}).ok());
  EXPECT_EQ(Count(), 3);
}

TEST_F(ProcessMergerTest, TheWorkOfARunIsLimited) {
  constexpr int64_t kStepsPerPiece = 60;
  AddMany(kClosed, 3 * ProcessMerger::kPiecesPerRun);
  for (int i = 0; i < 7; ++i) {
    steps_.Take();
    ASSERT_TRUE(merger_->Run(kNow).ok());
    EXPECT_LT(steps_.Take(), ProcessMerger::kPiecesPerRun * kStepsPerPiece);
  }
  EXPECT_LE(Count(), 6);
  steps_.Take();
  ASSERT_TRUE(merger_->Run(kNow).ok());
  EXPECT_LT(steps_.Take(), 100) << "there is nothing to join";
}

TEST_F(ProcessMergerTest, JoinedPiecesHaveALimitedSize) {
  AddMany(kClosed, 60'000);
  RunToEnd(40);
  Restart();
  RunToEnd(40);
  EXPECT_LE(Query("SELECT max(raw_bytes) FROM process_chunk"), ProcessMerger::kPieceBytesMax);
  EXPECT_LE(Count(), 20);
  EXPECT_EQ(Visited(kClosed, kClosed).size(), 60'000u);
  ExpectLedgerEqualsPieces();
}

TEST_F(ProcessMergerTest, JoinsPiecesThatReuseTheIdsOfRemovedOnes) {
  AddMany(kClosed, 100);
  RunToEnd();
  ASSERT_TRUE(database_.Execute("DELETE FROM process_chunk").ok());
  RunToEnd();
  AddMany(kClosed, 50);
  RunToEnd();
  EXPECT_EQ(Count(), 1);
}

// Between two runs, listed pieces are removed, and another machine gets their ids.
TEST_F(ProcessMergerTest, SkipsListedPiecesThatWereRemoved) {
  AddMany(kClosed, 2 * ProcessMerger::kPiecesPerRun);
  RunToEnd(1);
  ASSERT_TRUE(database_.Execute("DELETE FROM process_chunk WHERE id > 4000").ok());
  AddMany(kClosed, 200, kOther);
  RunToEnd();
  EXPECT_LT(Count(kOther), 200);
  EXPECT_EQ(Visited(kClosed, kClosed).size(), 4000u);
  EXPECT_EQ(Visited(kClosed, kClosed, kOther).size(), 200u);
}

TEST_F(ProcessMergerTest, ReportsADamagedPieceAndJoinsTheOthers) {
  AddMany(kClosed, 2 * ProcessMerger::kPiecesPerRun);
  AddMany(kClosed, 100, kOther);
  ASSERT_TRUE(database_.Execute("UPDATE process_chunk SET columns = x'63' WHERE id = 100").ok());
  RunToEnd();
  const auto reported = damage_.Take();
  ASSERT_EQ(reported.size(), 1u);
  EXPECT_EQ(reported.begin()->first, (DamageReports::Piece{PieceKind::kProcesses, 100}));
  EXPECT_LE(Count(), ProcessMerger::kPiecesPerRun + 3);
  EXPECT_EQ(Count(kOther), 1);
}

// After an error of a page, SQLite refuses all changes in the same transaction.
TEST(ProcessMergerDamage, APageThatCannotBeReadDoesNotStopTheOtherMachines) {
  constexpr int64_t kPieces = 20, kPageBytes = 8192;
  const TestDirectory directory;
  const std::string path = directory.path() + "/shard.db";
  std::string damaged;
  {
    Database database = OpenShardForWriting(path).value();
    Statement put = database
                        .Prepare(
                            "INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns, machine) "
                            "VALUES (?1, ?1, ?2, ?3, ?4)")
                        .value();
    std::mt19937_64 random(7);
    for (int64_t i = 0; i < 2 * kPieces; ++i) {
      StoredProcesses rows;
      for (uint32_t no = 1; no < 300; ++no) {
        rows.processes.push_back(
            {.no = no, .machine = 1 + i / kPieces, .start_time_ns = static_cast<int64_t>(random() >> 4)});
      }
      const PackedColumns packed = PackColumns(EncodeProcesses(rows));
      if (i == 5) damaged = packed.bytes.substr(packed.bytes.size() / 2, 64);
      ASSERT_TRUE(put.Bind(kClosed.value, packed.raw_bytes, packed.bytes, 1 + i / kPieces).Run().ok());
    }
  }
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const std::string bytes{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const size_t at = bytes.rfind(damaged);
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at / kPageBytes * kPageBytes));
  file << std::string(kPageBytes, '\x5a');
  file.close();

  Database database = OpenShardForWriting(path).value();
  DamageReports damage;
  const auto ledger = NodeLedger::Prepare(database, 1u << 30).value();
  const auto merger = ProcessMerger::Prepare(database, *ledger, &damage).value();
  for (int i = 0; i < 10; ++i) {
    const absl::Status status = merger->Run(kNow);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(
      database.QueryInt("SELECT count(*) FROM process_chunk INDEXED BY process_chunk_slots WHERE machine = 2").value(),
      1);
}

}  // namespace
}  // namespace tributary::store
