#include "reducer/sqlite/trie_merger.h"

#include <gtest/gtest.h>

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <map>

#include "base/directory_testing.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/day_trie.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/shard_reader.h"
#include "reducer/sqlite/sqlite_steps_testing.h"

namespace tributary::store {
namespace {

constexpr UnixNs kNow{1'700'000'040 * kNsPerSecond};
const Day kToday = DayOf(kNow), kYesterday{kToday.value - 1};
constexpr int kNodesPerPiece = 3;
constexpr int64_t kMachine = 1;
constexpr int kPieces = 3 * TrieMerger::kPassPieces + TrieMerger::kKeptPieces;

class TrieMergerTest : public ::testing::Test {
 protected:
  TrieMergerTest()
      : database_(OpenShardForWriting(path_).value()), merger_(TrieMerger::Prepare(database_, &damage_).value()) {}

  // Adds pieces as the writer's commits do: each with some new nodes, and with a frame of an earlier piece.
  void AddPieces(Day day, int pieces) {
    DayTrie& trie =
        tries_.try_emplace(day, day, TrieLimits{.nodes_max = 1u << 20, .machine_nodes_min = 1u << 20}).first->second;
    Transaction transaction = Transaction::Begin(database_).value();
    Statement put = database_
                        .Prepare(
                            "INSERT INTO trie_chunk (day, raw_bytes, columns, nodes_end, frames_end) VALUES (?, "
                            "?, ?, ?, ?)")
                        .value();
    for (int piece = 0; piece < pieces; ++piece) {
      uint32_t parent = 0;
      for (int i = 0; i < kNodesPerPiece; ++i) {
        const uint64_t address = i == 0 ? 1 : 1000 + ++address_;
        const FrameRow frame{
            .kind = FrameKind::kNative, .executable = ExecutableNo{1 + address_ % 3}, .address = address};
        parent = trie.InternNode(parent, trie.InternFrame(frame, kMachine), kMachine);
      }
      const PackedColumns packed = PackColumns(trie.EncodeNew());
      const TrieEnds ends = trie.ends();
      ASSERT_TRUE(put.Bind(day.value, packed.raw_bytes, packed.bytes, ends.nodes, ends.frames).Run().ok());
      trie.MarkCommitted();
    }
    ASSERT_TRUE(transaction.Commit().ok());
  }
  void RunToEnd(UnixNs now = kNow) {
    for (int i = 0; i < 20; ++i) {
      const absl::Status status = merger_->Run(now);
      ASSERT_TRUE(status.ok()) << status;
    }
  }
  int64_t Count(Day day) {
    return database_.QueryInt("SELECT count(*) FROM trie_chunk WHERE day = " + std::to_string(day.value)).value();
  }
  std::unique_ptr<StoreReader> Reader() {
    return SqliteShardReader::Open(path_, 0, {cache_, executables_, damage_}).value();
  }
  static void ExpectEqual(const TrieView& trie, const TrieView& expected) {
    EXPECT_TRUE(std::ranges::equal(trie.parents, expected.parents));
    EXPECT_TRUE(std::ranges::equal(trie.frames, expected.frames));
    EXPECT_TRUE(std::ranges::equal(trie.frame_rows, expected.frame_rows));
  }
  // Reads the trie without a cache.
  Trie Stored(Day day) {
    TrieCache none(0);
    const TrieView view =
        SqliteShardReader::Open(path_, 0, {none, executables_, damage_}).value()->LoadTrie(day).value();
    return {{view.parents.begin(), view.parents.end()},
            {view.frames.begin(), view.frames.end()},
            {view.frame_rows.begin(), view.frame_rows.end()}};
  }
  void Execute(const std::string& sql) {
    const absl::Status status = database_.Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  int64_t Number(const std::string& sql) { return database_.QueryInt(sql).value(); }
  // Says whether the merger has reported that the trie of the day is damaged.
  bool IsReported(Day day) { return damage_.Take().contains({PieceKind::kTrie, day.value}); }

  SqliteSteps steps_;
  const TestDirectory directory_;
  const std::string path_ = directory_.path() + "/shard.db";
  DamageReports damage_;
  Database database_;
  std::unique_ptr<TrieMerger> merger_;
  TrieCache cache_{1u << 30};
  SharedExecutableNumbers executables_;
  std::map<Day, DayTrie> tries_;
  uint32_t address_ = 0;
};

TEST_F(TrieMergerTest, JoinsPiecesOfADayThatIsBeingWritten) {
  AddPieces(kToday, kPieces);
  const Trie before = Stored(kToday);
  EXPECT_GT(before.parents.size(), size_t{kPieces} * (kNodesPerPiece - 1));
  RunToEnd();
  EXPECT_LE(Count(kToday), TrieMerger::kKeptPieces + 5);
  ExpectEqual(Stored(kToday), before);
}

TEST_F(TrieMergerTest, JoinsTheJoinedPiecesOfAClosedDay) {
  AddPieces(kYesterday, kPieces);
  RunToEnd(UnixNs{kNow.value - kNsPerDay});
  AddPieces(kToday, kPieces);
  const Trie yesterday = Stored(kYesterday), today = Stored(kToday);
  RunToEnd();
  EXPECT_LE(Count(kYesterday), 3);
  EXPECT_LE(Count(kToday), TrieMerger::kKeptPieces + 5);
  ExpectEqual(Stored(kYesterday), yesterday);
  ExpectEqual(Stored(kToday), today);
}

TEST_F(TrieMergerTest, JoinedPiecesHaveALimitedSize) {
  AddPieces(kYesterday, 100'000);
  AddPieces(kToday, 2 * TrieMerger::kKeptPieces);
  const Trie yesterday = Stored(kYesterday);
  for (int day = 0; day < 3; ++day) RunToEnd(UnixNs{kNow.value + day * kNsPerDay});
  EXPECT_LE(database_.QueryInt("SELECT max(raw_bytes) FROM trie_chunk").value(), TrieMerger::kPieceBytesMax);
  EXPECT_LE(Count(kYesterday), 5);
  ExpectEqual(Stored(kYesterday), yesterday);
}

// A reader may have cached a part of the day whose last piece was joined into a later one.
TEST_F(TrieMergerTest, ReadersWithCachedTriesStayRight) {
  AddPieces(kToday, 6000);
  const std::unique_ptr<StoreReader> early = Reader();
  const NodeNo first_leaf{3};
  (void)early->LoadTriePart(kToday, {&first_leaf, 1}).value();
  AddPieces(kToday, 10);
  (void)Reader()->LoadTriePart(kToday, {&first_leaf, 1}).value();  // the cached trie has grown
  AddPieces(kToday, kPieces);
  const std::unique_ptr<StoreReader> before = Reader();
  const Trie stored = Stored(kToday);
  RunToEnd();
  ASSERT_LT(Count(kToday), kPieces);
  const NodeNo leaf{static_cast<uint32_t>(stored.parents.size() - 1)};
  const TriePart part = Reader()->LoadTriePart(kToday, {&leaf, 1}).value();
  ASSERT_EQ(part.trie.parents.size(), 1u + kNodesPerPiece);
  EXPECT_EQ(part.trie.frame_rows[part.trie.frames[part.nodes[0].value]], stored.frame_rows.back());
  ExpectEqual(Reader()->LoadTrie(kToday).value(), stored);
  ExpectEqual(before->LoadTrie(kToday).value(), stored);
  // It has more nodes than `early` can use, but the same numbers.
  ExpectEqual(early->LoadTrie(kToday).value(), stored);
  AddPieces(kToday, 1);
  ExpectEqual(Reader()->LoadTrie(kToday).value(), Stored(kToday));
}

TEST_F(TrieMergerTest, AReaderOfTheStateBeforeTheJoinStaysRight) {
  AddPieces(kToday, kPieces);
  const std::unique_ptr<StoreReader> before = Reader();
  ASSERT_TRUE(before->SampleTypes().ok());
  const Trie stored = Stored(kToday);
  RunToEnd();
  ExpectEqual(before->LoadTrie(kToday).value(), stored);
  AddPieces(kToday, 5);
  ExpectEqual(Reader()->LoadTrie(kToday).value(), Stored(kToday));
}

TEST_F(TrieMergerTest, TheWorkOfARunIsLimited) {
  constexpr int64_t kStepsPerPiece = 60;
  AddPieces(kYesterday, 40'000);
  AddPieces(kToday, kPieces);
  for (int i = 0; i < 4; ++i) {
    steps_.Take();
    const int64_t before = Count(kYesterday);
    steps_.Take();
    ASSERT_TRUE(merger_->Run(kNow).ok());
    EXPECT_LT(steps_.Take(), TrieMerger::kPiecesPerRun * kStepsPerPiece);
    const int64_t joined = before - Count(kYesterday);
    EXPECT_GE(joined, TrieMerger::kPiecesPerRun / 2);
    EXPECT_LE(joined, TrieMerger::kPiecesPerRun);
  }
  RunToEnd();
  steps_.Take();
  ASSERT_TRUE(merger_->Run(kNow).ok());
  EXPECT_LT(steps_.Take(), 100) << "there is nothing to join";
}

TEST_F(TrieMergerTest, SkipsADamagedPiece) {
  AddPieces(kToday, kPieces);
  Execute("UPDATE trie_chunk SET columns = x'63' WHERE id = 100");
  RunToEnd();
  EXPECT_TRUE(IsReported(kToday));
  EXPECT_GT(database_.QueryInt("SELECT count(*) FROM trie_chunk WHERE id <= 4096").value(), 4000);
  EXPECT_LE(Count(kToday), 4096 + TrieMerger::kKeptPieces + 5);
}

TEST_F(TrieMergerTest, ADamagedPieceIsAnErrorWithoutReports) {
  AddPieces(kToday, kPieces);
  Execute("UPDATE trie_chunk SET columns = x'63' WHERE id = 100");
  merger_ = TrieMerger::Prepare(database_, nullptr).value();
  const absl::Status status = merger_->Run(kNow);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  RunToEnd();
  EXPECT_LE(Count(kToday), 4096 + TrieMerger::kKeptPieces + 5);
}

// In a joined piece, the intact pieces would be lost, too.
TEST_F(TrieMergerTest, SkipsAPieceWithAWrongNumberOfNodes) {
  for (const int id : {2, 100}) {
    SCOPED_TRACE(id);
    const Day day{kToday.value - id};
    AddPieces(day, kPieces);
    AddPieces(kToday, 2 * TrieMerger::kKeptPieces);
    const std::string first = "(SELECT min(id) FROM trie_chunk WHERE day = " + std::to_string(day.value) + ")";
    // The first three pieces of a day have three new nodes, and the others two.
    Execute("UPDATE trie_chunk SET (raw_bytes, columns) = (SELECT raw_bytes, columns FROM trie_chunk WHERE id = " +
            first + " + " + std::to_string(102 - id) + ") WHERE id = " + first + " + " + std::to_string(id - 1));
    RunToEnd(UnixNs{kNow.value + id * kNsPerDay});
    EXPECT_TRUE(IsReported(day));
    EXPECT_EQ(Number("SELECT count(*) FROM trie_chunk WHERE id BETWEEN " + first + " AND " + first + " + 4000"), 4001);
    EXPECT_LE(Count(day), 4096 + 5);
  }
}

// A gap refers to pieces by their ids.
TEST_F(TrieMergerTest, SkipsADayWithAGap) {
  AddPieces(kYesterday, kPieces);
  AddPieces(kToday, kPieces);
  Execute("UPDATE trie_chunk SET columns = x'63' WHERE id = 100");
  // Yesterday's pieces are listed before the day has a gap.
  ASSERT_TRUE(merger_->Run(kNow).ok());
  ASSERT_TRUE(IsReported(kYesterday));
  Execute(
      "INSERT INTO trie_gap (day, first_piece, last_piece, nodes_end, frames_end, name, found) SELECT day, id, id, "
      "nodes_end, frames_end, 0, 0 FROM trie_chunk WHERE id = 100");
  const Trie yesterday = Stored(kYesterday);
  const int64_t pieces = Count(kYesterday);
  RunToEnd();
  RunToEnd(UnixNs{kNow.value + kNsPerDay});
  EXPECT_EQ(Count(kYesterday), pieces);
  EXPECT_LE(Count(kToday), TrieMerger::kKeptPieces + 5);
  ExpectEqual(Stored(kYesterday), yesterday);
  EXPECT_TRUE(damage_.Take().empty());
}

// Pieces of earlier releases do not contain the numbers of the nodes after them.
TEST_F(TrieMergerTest, JoinsPiecesWithAndWithoutNumbers) {
  AddPieces(kToday, kPieces);
  Execute("UPDATE trie_chunk SET nodes_end = NULL, frames_end = NULL WHERE id < 6000");
  const Trie before = Stored(kToday);
  RunToEnd();
  EXPECT_LE(Count(kToday), TrieMerger::kKeptPieces + 5);
  ExpectEqual(Stored(kToday), before);
  EXPECT_TRUE(damage_.Take().empty());
}

TEST_F(TrieMergerTest, AJoinedPieceHasTheNumbersOfItsLastPart) {
  AddPieces(kToday, kPieces);
  Execute("CREATE TEMP TABLE before AS SELECT id, nodes_end, frames_end FROM trie_chunk");
  RunToEnd();
  EXPECT_EQ(Number("SELECT count(*) FROM trie_chunk c JOIN before b USING (id) WHERE (c.nodes_end, c.frames_end) <> "
                   "(b.nodes_end, b.frames_end)"),
            0);
  const int64_t joined = Number("SELECT id FROM trie_chunk WHERE id > 1 ORDER BY id LIMIT 1");
  EXPECT_GT(joined, 4000);
  // The joined piece is lost: all later pieces still have their numbers.
  const Trie before = Stored(kToday);
  Execute("UPDATE trie_chunk SET columns = x'63' WHERE id = " + std::to_string(joined));
  const Trie after = Stored(kToday);
  ASSERT_EQ(after.parents.size(), before.parents.size());
  EXPECT_EQ(after.parents.back(), before.parents.back());
  EXPECT_EQ(after.frame_rows.back(), before.frame_rows.back());
}

TEST_F(TrieMergerTest, ForgetsADayThatWasRemoved) {
  AddPieces(kYesterday, 2 * kPieces);
  AddPieces(kToday, kPieces);
  ASSERT_TRUE(merger_->Run(kNow).ok());
  ASSERT_TRUE(database_.Execute("DELETE FROM trie_chunk WHERE day = " + std::to_string(kYesterday.value)).ok());
  const Trie today = Stored(kToday);
  RunToEnd();
  EXPECT_EQ(Count(kYesterday), 0);
  ExpectEqual(Stored(kToday), today);
}

TEST_F(TrieMergerTest, ATrieStaysWholeAcrossKills) {
  AddPieces(kYesterday, 20'000);
  AddPieces(kToday, kPieces);
  const Trie yesterday = Stored(kYesterday), today = Stored(kToday);
  int killed = 0;
  for (int round = 0; round < 20; ++round) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      Database database = OpenShardForWriting(path_).value();
      auto merger = TrieMerger::Prepare(database, nullptr).value();
      for (int i = 0; i < 20; ++i) {
        if (!merger->Run(kNow).ok()) _exit(2);
      }
      _exit(0);
    }
    usleep(static_cast<useconds_t>(2'000 + (round * 7'919) % 20'000));
    kill(child, SIGKILL);
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) ++killed;
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << WEXITSTATUS(status);
    ExpectEqual(Stored(kYesterday), yesterday);
    ExpectEqual(Stored(kToday), today);
  }
  EXPECT_GT(killed, 0);
  RunToEnd();
  EXPECT_LE(Count(kYesterday), 10);
  ExpectEqual(Stored(kYesterday), yesterday);
  ExpectEqual(Stored(kToday), today);
}

}  // namespace
}  // namespace tributary::store
