#include "reducer/sqlite/set_aside.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "reducer/sqlite/sqlite_store_testing.h"

namespace tributary::store {
namespace {

using ::testing::ElementsAre;

// Damages rows of a shard's file while no program has it open, and then goes on with commits and queries.
class SetAsideTest : public SqliteStoreTest {
 protected:
  // Commits one sample with this stack.
  void Commit(const std::vector<uint64_t>& stack, int64_t at_s = -10) {
    collector_.Add(At(at_s), collector_.Thread(1, "a"), collector_.Stack(stack));
    CommitOne(collector_.Take(At(at_s)));
  }
  // The collector starts a new dictionary after that, as it does in reality.
  void DamageAndReopen(const std::string& sql) {
    Execute(sql);
    Reopen();
    collector_.StartGeneration();
  }
  void Execute(const std::string& sql) {
    const absl::Status status = database().Execute(sql);
    ASSERT_TRUE(status.ok()) << status;
  }
  int64_t Query(const std::string& sql) { return database().QueryInt(sql).value(); }
  Database& database() { return static_cast<SqliteShardWriter*>(writer_.get())->database(); }
  uint64_t Counted(std::string_view piece) {
    return metrics_.AddCounter("tributary_reducer_set_aside_total", "", {{"piece", std::string(piece)}}).value();
  }
  // Returns the stacks of all samples, in the order of their times: addresses or names, the outermost first.
  std::vector<std::string> Stacks() {
    std::vector<std::string> stacks;
    auto reader = Reader();
    const absl::Status scanned = reader->ScanSamples(kAlways, [&](const SampleColumns& columns) -> absl::Status {
      const auto trie = reader->LoadTrie(columns.day).value();
      const TriePart part = reader->LoadTriePart(columns.day, columns.nodes).value();
      for (size_t i = 0; i < columns.nodes.size(); ++i) {
        stacks.push_back(StackOf(*reader, trie, columns.nodes[i]));
        EXPECT_EQ(StackOf(*reader, part.trie, part.nodes[i]), stacks.back());
      }
      return absl::OkStatus();
    });
    EXPECT_TRUE(scanned.ok()) << scanned;
    return stacks;
  }

  TestCollector collector_{"node-a"};

 private:
  static std::string StackOf(StoreReader& reader, const TrieView& trie, NodeNo node) {
    std::string stack;
    if (node.value >= trie.parents.size()) return "unknown";
    for (; node.value != 0; node = trie.parents[node.value]) {
      const FrameRow& row = trie.frame_rows[trie.frames[node.value]];
      const std::string text = row.name.value != 0 ? std::string(reader.Text(row.name).value())
                               : row.address != 0  ? fmt::format("{}", row.address)
                                                   : "unknown";
      stack = stack.empty() ? text : text + ";" + stack;
    }
    return stack.empty() ? "unknown" : stack;
  }
};

// Before, the commit was retried for ever, and no node of the shard could store anything.
TEST_F(SetAsideTest, ADamagedPieceOfTodaysTrieDoesNotStopTheIntake) {
  Commit({1, 2});
  Commit({1, 3});
  Commit({4, 5});
  DamageAndReopen("UPDATE trie_chunk SET columns = x'00' WHERE id = 2");
  Commit({1, 3});
  Commit({6});
  const std::string lost(SetAside::kLostFrame);
  EXPECT_THAT(Stacks(), ElementsAre("1;2", lost, "4;5", "1;3", "6"));
  EXPECT_EQ(Counted("trie"), 1u);
  const Totals totals = TotalsOf(*Reader());
  EXPECT_EQ(totals.captured, 5u);
  EXPECT_EQ(totals.stored, 5u);

  // All of it stays so after a restart.
  Reopen();
  collector_.StartGeneration();
  Commit({4, 7});
  EXPECT_THAT(Stacks(), ElementsAre("1;2", lost, "4;5", "1;3", "6", "4;7"));
  EXPECT_EQ(Counted("trie"), 1u);
}

// An earlier release wrote the pieces. So the numbers after the damaged piece are unknown, and the trie begins anew
// behind all numbers that samples have.
TEST_F(SetAsideTest, ATrieWithUnknownNumbersBeginsAnew) {
  Commit({1, 2});
  Commit({1, 3});
  Commit({4, 5});
  DamageAndReopen(
      "UPDATE trie_chunk SET nodes_end = NULL, frames_end = NULL;"
      "UPDATE trie_chunk SET columns = x'00' WHERE id = 2");
  EXPECT_THAT(Stacks(), ElementsAre("1;2", "unknown", "unknown"));
  Commit({4, 5});
  Commit({1, 3});
  const std::string lost(SetAside::kLostFrame);
  EXPECT_THAT(Stacks(), ElementsAre("1;2", lost, lost, "4;5", "1;3"));
  EXPECT_EQ(Counted("trie"), 2u);
}

// The number of nodes after the last piece is in the same row, so it may be damaged, too.
TEST_F(SetAsideTest, DoesNotBelieveTheNumbersOfTheLastPiece) {
  for (const int64_t nodes_end : {1, 2, 3, 1'000'000'000}) {
    SCOPED_TRACE(nodes_end);
    Commit({1, 2});
    Commit({1, 3, 4});
    const std::vector<std::string> before = Stacks();
    DamageAndReopen(
        fmt::format("UPDATE trie_chunk SET columns = x'00', nodes_end = {} WHERE id = (SELECT max(id) FROM "
                    "trie_chunk)",
                    nodes_end));
    Commit({7, 8});
    Commit({1, 3, 4});
    const std::vector<std::string> after = Stacks();
    ASSERT_EQ(after.size(), before.size() + 2);
    for (size_t i = 0; i < before.size(); ++i) {
      EXPECT_THAT(after[i], ::testing::AnyOf(before[i], std::string(SetAside::kLostFrame), "unknown"));
    }
    EXPECT_EQ(after[before.size()], "7;8");
    EXPECT_EQ(after.back(), "1;3;4");
  }
}

// A piece that decodes, but has another number of nodes, would shift the numbers of all later nodes.
TEST_F(SetAsideTest, APieceWithAWrongNumberOfNodesIsDamaged) {
  Commit({1, 2});
  Commit({3});
  Commit({4, 5});
  DamageAndReopen("UPDATE trie_chunk SET columns = (SELECT columns FROM trie_chunk WHERE id = 1) WHERE id = 2");
  Commit({6});
  EXPECT_THAT(Stacks(), ElementsAre("1;2", SetAside::kLostFrame, "4;5", "6"));
}

TEST_F(SetAsideTest, TheStatusListsWhatWasSetAside) {
  Commit({1});
  Commit({2});
  Commit({3});
  EXPECT_TRUE(store_->ListDamage().empty());
  DamageAndReopen(
      "UPDATE sample_chunk SET columns = x'00' WHERE id < 3; UPDATE trie_chunk SET columns = x'00' WHERE id = 2");
  EXPECT_EQ(CountSamples(*Reader()), 1u);
  Commit({4});
  ASSERT_TRUE(writer_->Maintain(At(0)).ok());
  const auto check = [&] {
    const std::vector<DamageEntry> damage = store_->ListDamage();
    ASSERT_EQ(damage.size(), 2u);
    EXPECT_EQ(damage[0].shard, 0u);
    EXPECT_EQ(damage[0].kind, "samples");
    EXPECT_EQ(damage[0].count, 2u);
    EXPECT_NE(damage[0].reason.find("corrupt"), std::string::npos) << damage[0].reason;
    EXPECT_EQ(damage[1].kind, "trie");
    EXPECT_EQ(damage[1].count, 1u);
  };
  check();
  Reopen();
  check();
}

TEST_F(SetAsideTest, AReaderReportsADamagedTrieOfAnotherDay) {
  Commit({1, 2});
  Commit({3});
  clock_.Advance(2 * kNsPerDay);
  DamageAndReopen("UPDATE trie_chunk SET columns = x'00' WHERE id = 1");
  EXPECT_EQ(Stacks().size(), 2u);
  EXPECT_EQ(Counted("trie"), 0u) << "only the writer changes the file";
  EXPECT_TRUE(writer_->Maintain(At(-5)).ok());
  EXPECT_EQ(Counted("trie"), 1u);
  EXPECT_THAT(Stacks(), ElementsAre(SetAside::kLostFrame, "3"));
}

// The session has sent the stack before, and its collector does not start a new dictionary.
TEST_F(SetAsideTest, ASessionLooksUpItsLostNodesAgain) {
  Commit({1, 2});
  Commit({1, 3});
  Commit({4, 5});
  Execute("UPDATE trie_chunk SET columns = x'00' WHERE id = 2");
  const std::string lost(SetAside::kLostFrame);
  EXPECT_THAT(Stacks(), ElementsAre("1;2", "unknown", "4;5"));
  ASSERT_TRUE(writer_->Maintain(At(-5)).ok());
  ASSERT_EQ(Counted("trie"), 1u);
  Commit({1, 3});
  Commit({1, 2});
  EXPECT_THAT(Stacks(), ElementsAre("1;2", lost, "4;5", "1;3", "1;2"));
}

TEST_F(SetAsideTest, DamagedRowsAreMovedAndQueriesGoOn) {
  Commit({1});
  Commit({2});
  collector_.Add(At(-10), collector_.Event(ProcessEventKind::kExec, 7, "gcc"));
  CommitOne(collector_.Take(At(-10)));
  ASSERT_TRUE(writer_->Maintain(At(3600)).ok());
  ASSERT_EQ(Query("SELECT count(*) FROM minute_sum"), 1);
  DamageAndReopen(
      "UPDATE sample_chunk SET columns = zeroblob(length(columns)) WHERE id = 1;"
      "UPDATE process_chunk SET columns = zeroblob(length(columns)) WHERE id = 1;"
      "UPDATE event_chunk SET columns = zeroblob(length(columns));"
      "UPDATE minute_sum SET columns = zeroblob(length(columns))");
  const int64_t definitions = Query("SELECT sum(definition_bytes) FROM node_day"),
                processes = Query("SELECT length(columns) + 56 FROM process_chunk WHERE id = 1");
  const auto query = [&] {
    EXPECT_EQ(CountSamples(*Reader()), 1u);
    EXPECT_TRUE(Reader()->Processes(kAlways, nullptr).ok());
    EXPECT_TRUE(Reader()->ScanSums(kAlways, [](const SumColumns&) { return absl::OkStatus(); }).ok());
    EXPECT_TRUE(Reader()->ScanEvents(kAlways, [](const ProcessEventRow&) { return absl::OkStatus(); }).ok());
    EXPECT_EQ(Reader()->ScanCommittedEvents(0, 100, [](const ProcessEventRow&) { return absl::OkStatus(); }).value(),
              1);
    const CommittedScan scan =
        Reader()->ScanCommitted({}, 100, [](const SampleColumns&, const Cursor&) { return absl::OkStatus(); }).value();
    EXPECT_EQ(scan.next, (Cursor{.chunk = 2, .samples = 2}));
    EXPECT_EQ(scan.expired_samples, 1u) << "an exporter counts the damaged sample as expired";
  };
  query();
  ASSERT_TRUE(writer_->Maintain(At(3601)).ok());
  for (const std::string_view piece : {"samples", "processes", "sums", "events"})
    EXPECT_EQ(Counted(piece), 1u) << piece;
  EXPECT_EQ(Query("SELECT count(*) FROM set_aside WHERE columns = zeroblob(length(columns))"), 4);
  EXPECT_EQ(Query("SELECT sum(data_bytes) FROM node_day"),
            Query("SELECT sum(length(columns) + 56) FROM (SELECT columns FROM sample_chunk UNION ALL SELECT columns "
                  "FROM minute_sum UNION ALL SELECT columns FROM event_chunk)"));
  EXPECT_EQ(Query("SELECT sum(definition_bytes) FROM node_day"), definitions - processes);
  EXPECT_EQ(Query("SELECT count(*) FROM sample_chunk"), 1);
  EXPECT_EQ(Query("SELECT count(*) FROM event_chunk"), 0);
}

// Exporters count samples by the total of all chunks.
TEST_F(SetAsideTest, TheTotalOfSamplesContinuesAfterTheNewestChunkWasMoved) {
  Commit({1});
  Commit({2});
  DamageAndReopen("UPDATE sample_chunk SET columns = x'00' WHERE id = 2");
  EXPECT_EQ(CountSamples(*Reader()), 1u);
  ASSERT_TRUE(writer_->Maintain(At(0)).ok());
  ASSERT_EQ(Counted("samples"), 1u);
  Reopen();
  collector_.StartGeneration();
  Commit({3});
  EXPECT_EQ(Query("SELECT samples_end FROM sample_chunk ORDER BY id DESC LIMIT 1"), 3);
}

TEST_F(SetAsideTest, MaintenanceSumsUpTheRestOfAMinute) {
  Commit({1});
  Commit({2});
  DamageAndReopen("UPDATE sample_chunk SET columns = x'00' WHERE id = 1");
  ASSERT_TRUE(writer_->Maintain(At(3600)).ok());
  ASSERT_TRUE(writer_->Maintain(At(3601)).ok());
  EXPECT_EQ(Query("SELECT sum(pairs) FROM minute_sum"), 1);
  EXPECT_EQ(Counted("samples"), 1u);
}

}  // namespace
}  // namespace tributary::store
