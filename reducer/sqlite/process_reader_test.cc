#include "reducer/sqlite/process_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/directory_testing.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/sqlite_steps_testing.h"

namespace tributary::store {
namespace {

constexpr Slot kFirst{2'800'000};
constexpr int kSlots = 200, kPiecesPerSlot = 100;

class ProcessReaderTest : public ::testing::Test {
 protected:
  ProcessReaderTest() : database_(OpenShardForWriting(directory_.path() + "/shard.db").value()) {
    put_ = database_
               .Prepare(
                   "INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns, machine) VALUES "
                   "(?, ?, ?, ?, ?)")
               .value();
  }
  // Machine 0: an earlier release wrote the piece.
  void Add(Slot first, Slot last, uint32_t no, int64_t machine = 0) {
    StoredProcesses rows;
    rows.processes.push_back({.no = no});
    const PackedColumns packed = PackColumns(EncodeProcesses(rows));
    ASSERT_TRUE(put_.Bind(first.value, last.value, packed.raw_bytes, packed.bytes, machine).Run().ok());
  }
  std::vector<uint32_t> Visited(Slot first, Slot last, const ScanFilter& filter = {}) {
    std::vector<uint32_t> visited;
    EXPECT_TRUE(VisitProcesses(database_, first, last, filter, PieceParts::kProcessesAndThreads, nullptr,
                               [&](const StoredProcesses& piece, Slot) {
                                 for (const StoredProcess& process : piece.processes) visited.push_back(process.no);
                                 return absl::OkStatus();
                               })
                    .ok());
    return visited;
  }

  SqliteSteps steps_;
  const TestDirectory directory_;
  Database database_;
  Statement put_;
};

TEST_F(ProcessReaderTest, VisitsThePiecesOfTheSlotsNewestFirst) {
  Add(kFirst, kFirst, 1);
  Add(Slot{kFirst.value + 1}, Slot{kFirst.value + 1}, 2);
  Add(kFirst, kFirst, 3);
  Add(Slot{kFirst.value + 2}, Slot{kFirst.value + 2}, 4);
  // Pieces of several slots were converted from schema 2.
  Add(Slot{kFirst.value - 5}, Slot{kFirst.value + 9}, 5);
  Add(Slot{kFirst.value - 5}, kFirst, 6);
  Add(Slot{kFirst.value + 2}, Slot{kFirst.value + 9}, 7);
  EXPECT_EQ(Visited(kFirst, Slot{kFirst.value + 1}), (std::vector<uint32_t>{6, 5, 3, 2, 1}));
  EXPECT_EQ(Visited(Slot{kFirst.value + 3}, Slot{kFirst.value + 3}), (std::vector<uint32_t>{7, 5}));
  EXPECT_TRUE(Visited(Slot{kFirst.value - 9}, Slot{kFirst.value - 6}).empty());
}

// A damaged file may have any id and slot.
TEST_F(ProcessReaderTest, ImpossibleIdsAndSlotsDoNotOverflow) {
  for (uint32_t no = 1; no <= 5; ++no) Add(kFirst, kFirst, no);
  ASSERT_TRUE(database_
                  .Execute("UPDATE process_chunk SET id = -9223372036854775807 - 1 WHERE id = 1;"
                           "UPDATE process_chunk SET id = 9223372036854775807 WHERE id = 2;"
                           "UPDATE process_chunk SET last_slot = 2000000000 WHERE id = 3;")
                  .ok());
  EXPECT_EQ(Visited(kFirst, kFirst), (std::vector<uint32_t>{2, 5, 4, 3, 1}));
  Slot latest;
  const auto visit = [&latest](const StoredProcesses&, Slot last_slot) {
    latest = std::max(latest, last_slot);
    return absl::OkStatus();
  };
  ASSERT_TRUE(VisitProcesses(database_, kFirst, kFirst, {}, PieceParts::kProcesses, nullptr, visit).ok());
  EXPECT_GT(StartOf(latest), StartOf(kFirst));
}

TEST_F(ProcessReaderTest, LeavesOutThePiecesOfOtherMachines) {
  Add(kFirst, kFirst, 1, 1);
  Add(kFirst, kFirst, 2, 2);
  Add(kFirst, kFirst, 3, 3);
  Add(kFirst, kFirst, 4);
  Add(Slot{kFirst.value - 5}, Slot{kFirst.value + 9}, 5);
  EXPECT_EQ(Visited(kFirst, kFirst, {.machines = {{MachineNo{2}}}}), (std::vector<uint32_t>{5, 4, 2}));
  EXPECT_EQ(Visited(kFirst, kFirst, {.machines = {{MachineNo{1}, MachineNo{3}}}}), (std::vector<uint32_t>{5, 4, 3, 1}));
  EXPECT_EQ(Visited(kFirst, kFirst, {.type = TypeNo{1}}).size(), 5u);
  // A statement cannot list so many machines, so all pieces are visited.
  ScanFilter many{.machines = std::vector<MachineNo>()};
  for (int64_t i = 10; i < 20'010; ++i) many.machines->push_back(MachineNo{i});
  EXPECT_EQ(Visited(kFirst, kFirst, many).size(), 5u);
}

// A query of an old range must not look at the pieces of all newer slots.
TEST_F(ProcessReaderTest, TheWorkDependsOnlyOnThePiecesOfTheRange) {
  constexpr int64_t kStepsPerPiece = 40;
  Transaction transaction = Transaction::Begin(database_).value();
  for (int slot = 0; slot < kSlots; ++slot) {
    for (int i = 0; i < kPiecesPerSlot; ++i) Add(Slot{kFirst.value + slot}, Slot{kFirst.value + slot}, 1);
  }
  ASSERT_TRUE(transaction.Commit().ok());
  for (const int slot : {0, kSlots / 2, kSlots - 1}) {
    steps_.Take();
    EXPECT_EQ(Visited(Slot{kFirst.value + slot}, Slot{kFirst.value + slot}).size(), size_t{kPiecesPerSlot});
    EXPECT_LT(steps_.Take(), kPiecesPerSlot * kStepsPerPiece) << slot;
  }
}

}  // namespace
}  // namespace tributary::store
