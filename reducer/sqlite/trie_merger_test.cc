#include "reducer/sqlite/trie_merger.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <map>

#include "base/directory_testing.h"
#include "reducer/sqlite/column_codec.h"
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
  TrieMergerTest() : database_(OpenShardForWriting(path_).value()), merger_(TrieMerger::Prepare(database_).value()) {}

  // Adds pieces as the writer's commits do: each with some new nodes, and with a frame of an earlier piece.
  void AddPieces(Day day, int pieces) {
    DayTrie& trie =
        tries_.try_emplace(day, day, TrieLimits{.nodes_max = 1u << 20, .machine_nodes_min = 1u << 20}).first->second;
    Transaction transaction = Transaction::Begin(database_).value();
    Statement put = database_.Prepare("INSERT INTO trie_chunk (day, raw_bytes, columns) VALUES (?, ?, ?)").value();
    for (int piece = 0; piece < pieces; ++piece) {
      uint32_t parent = 0;
      for (int i = 0; i < kNodesPerPiece; ++i) {
        const uint64_t address = i == 0 ? 1 : 1000 + ++address_;
        const FrameRow frame{
            .kind = FrameKind::kNative, .executable = ExecutableNo{1 + address_ % 3}, .address = address};
        parent = trie.InternNode(parent, trie.InternFrame(frame, kMachine), kMachine);
      }
      const PackedColumns packed = PackColumns(trie.EncodeNew());
      ASSERT_TRUE(put.Bind(day.value, packed.raw_bytes, packed.bytes).Run().ok());
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
  std::unique_ptr<StoreReader> Reader() { return SqliteShardReader::Open(path_, 0, cache_).value(); }
  static void ExpectEqual(const Trie& trie, const Trie& expected) {
    EXPECT_EQ(trie.parents, expected.parents);
    EXPECT_EQ(trie.frames, expected.frames);
    EXPECT_EQ(trie.frame_rows, expected.frame_rows);
  }
  // Reads the trie without a cache.
  Trie Stored(Day day) {
    TrieCache none(0);
    return *SqliteShardReader::Open(path_, 0, none).value()->LoadTrie(day).value();
  }

  SqliteSteps steps_;
  const TestDirectory directory_;
  const std::string path_ = directory_.path() + "/shard.db";
  Database database_;
  std::unique_ptr<TrieMerger> merger_;
  TrieCache cache_{1u << 30};
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
  (void)Reader()->LoadTriePart(kToday, {&first_leaf, 1}).value();  // the cache has a tail now
  AddPieces(kToday, kPieces);
  const std::unique_ptr<StoreReader> before = Reader();
  const Trie stored = Stored(kToday);
  RunToEnd();
  ASSERT_LT(Count(kToday), kPieces);
  const NodeNo leaf{static_cast<uint32_t>(stored.parents.size() - 1)};
  const TriePart part = Reader()->LoadTriePart(kToday, {&leaf, 1}).value();
  ASSERT_EQ(part.trie.parents.size(), 1u + kNodesPerPiece);
  EXPECT_EQ(part.trie.frame_rows[part.trie.frames[part.nodes[0].value]], stored.frame_rows.back());
  ExpectEqual(*Reader()->LoadTrie(kToday).value(), stored);
  ExpectEqual(*before->LoadTrie(kToday).value(), stored);
  // It has more nodes than `early` can use, but the same numbers.
  ExpectEqual(*early->LoadTrie(kToday).value(), stored);
  AddPieces(kToday, 1);
  ExpectEqual(*Reader()->LoadTrie(kToday).value(), Stored(kToday));
}

TEST_F(TrieMergerTest, AReaderOfTheStateBeforeTheJoinStaysRight) {
  AddPieces(kToday, kPieces);
  const std::unique_ptr<StoreReader> before = Reader();
  ASSERT_TRUE(before->SampleTypes().ok());
  const Trie stored = Stored(kToday);
  RunToEnd();
  ExpectEqual(*before->LoadTrie(kToday).value(), stored);
  AddPieces(kToday, 5);
  ExpectEqual(*Reader()->LoadTrie(kToday).value(), Stored(kToday));
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
  ASSERT_TRUE(database_.Execute("UPDATE trie_chunk SET columns = x'63' WHERE id = 100").ok());
  const absl::Status status = merger_->Run(kNow);
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
  RunToEnd();
  EXPECT_GT(database_.QueryInt("SELECT count(*) FROM trie_chunk WHERE id <= 4096").value(), 4000);
  EXPECT_LE(Count(kToday), 4096 + TrieMerger::kKeptPieces + 5);
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
      auto merger = TrieMerger::Prepare(database).value();
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
