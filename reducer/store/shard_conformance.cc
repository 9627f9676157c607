#include <gtest/gtest.h>

#include "reducer/store/store_conformance_testing.h"

// Shards, cursors, failures and limits.

namespace tributary::store {
namespace {

TEST_P(ShardConformance, AShardHasOneWriter) {
  EXPECT_TRUE(absl::IsFailedPrecondition(store_->OpenWriter(0).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->OpenWriter(1).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(store_->OpenReader(1).status()));
}

TEST_P(ShardConformance, ShardsKnowNothingOfEachOther) {
  options_.shards = 2;
  Reopen();
  ASSERT_EQ(store_->shard_count(), 2u);
  EXPECT_TRUE(Reader(1)->Nodes()->empty()) << "nothing was written yet";
  EXPECT_EQ(CountSamples(*Reader(1)), 0u);
  EXPECT_EQ(Reader(1)->LoadTrie(DayOf(kNow)).value().parents.size(), 1u);
  EXPECT_EQ(Reader(1)->Executables()->size(), 1u);
  auto second = store_->OpenWriter(1).value();
  TestCollector a("node-a", 1), b("node-b", 2);
  a.Add(At(0), a.Thread(1, "a"), a.Stack({1, 2}));
  b.Add(At(0), b.Thread(1, "b"), b.Stack({3}));
  b.Add(At(0), b.Thread(1, "b"), b.Stack({3}));
  CommitOne(a.Take(At(0)));
  const RowBatch of_b = b.Take(At(0));
  ASSERT_TRUE(second->Commit({&of_b, 1}).ok());
  EXPECT_EQ(CountSamples(*Reader(0)), 1u);
  EXPECT_EQ(CountSamples(*Reader(1)), 2u);
  EXPECT_EQ(Reader(0)->Nodes()->at(0).node_id, "node-a");
  EXPECT_EQ(Reader(1)->Nodes()->at(0).node_id, "node-b");
  EXPECT_TRUE(absl::IsNotFound(second->FindSession(a.info().session_id).status()));
  EXPECT_GT(store_->disk_bytes(), 0u);
}

TEST_P(ShardConformance, PositionsAreKeptByExporterAndShard) {
  options_.shards = 2;
  Reopen();
  PositionStore& positions = store_->positions();
  const ExportPosition within{.cursor = {.chunk = 10, .rows = 3, .samples = 1'000},
                              .request = ExportRequest{.end = {.chunk = 11, .rows = 2, .samples = std::nullopt},
                                                       .session = {1, 0, 255},
                                                       .first = uint64_t{1} << 63,
                                                       .rows = 12}};
  ASSERT_TRUE(positions.SavePosition("otlp", 0, {.cursor = {.chunk = 7}}).ok());
  ASSERT_TRUE(positions.SavePosition("otlp", 1, {.cursor = {.chunk = 8, .samples = std::nullopt}}).ok());
  ASSERT_TRUE(positions.SavePosition("console", 0, within).ok());
  ASSERT_TRUE(positions.SavePosition("console", 0, {.cursor = {.chunk = 9}}).ok());
  ASSERT_TRUE(positions.SavePosition("otlp", 0, within).ok());
  Reopen();
  PositionStore& again = store_->positions();
  EXPECT_EQ(again.LoadPosition("otlp", 0).value(), within);
  EXPECT_EQ(again.LoadPosition("otlp", 1).value(), (ExportPosition{.cursor = {.chunk = 8, .samples = std::nullopt}}));
  EXPECT_EQ(again.LoadPosition("console", 0).value(), (ExportPosition{.cursor = {.chunk = 9}})) << "without a request";
  EXPECT_EQ(again.LoadPosition("console", 1).value(), std::nullopt);
}

// Each batch has its own outcome: a refused batch does not affect the others.
TEST_P(ShardConformance, AGroupMayHoldSeveralSources) {
  TestCollector a("node-a", 1), b("node-b", 2), c("node-c", 3);
  a.Add(At(0), a.Thread(1, "a"), a.Stack({1, 2}));
  b.Add(At(0), ThreadRef{99}, NodeRef{});
  c.Add(At(0), c.Thread(1, "c"), c.Stack({1, 2}));
  std::vector<RowBatch> group = {a.Take(At(0)), b.Take(At(0)), c.Take(At(0))};
  a.Add(At(1), a.Thread(1, "a"), a.Stack({1, 2}));
  group.push_back(a.Take(At(1)));
  const auto outcomes = writer_->Commit(group).value();
  ASSERT_EQ(outcomes.size(), 4u);
  EXPECT_EQ(outcomes[0].sequence, 1u);
  EXPECT_TRUE(outcomes[1].need_dictionary);
  EXPECT_EQ(outcomes[1].sequence, 0u);
  EXPECT_EQ(outcomes[2].sequence, 1u);
  EXPECT_EQ(outcomes[3].sequence, 2u);
  EXPECT_EQ(CountSamples(*Reader()), 3u);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value().parents.size(), 3u) << "equal stacks are one";
  const std::vector<NodeStatus> nodes = Reader()->Nodes().value();
  EXPECT_EQ(nodes.size(), 2u) << "a node is unknown if its only batch was refused";
  EXPECT_TRUE(absl::IsNotFound(writer_->FindSession(b.info().session_id).status()));
}

// Nothing of the group is kept, neither in storage nor in memory. The same group can be committed when commits succeed
// again.
TEST_P(ShardConformance, AFailedCommitKeepsNothingAndLosesNothing) {
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(-10), thread, collector.Stack({1, 2}));
  CommitOne(collector.Take(At(-10)));
  std::vector<RowBatch> group;
  for (int i = 0; i < 3; ++i) {
    collector.Add(At(i), collector.Thread(2 + i, "t"), collector.Stack({1, 3 + static_cast<uint64_t>(i)}));
    group.push_back(collector.Take(At(i)));
  }
  backend_->FailCommits(true);
  for (int attempt = 0; attempt < 3; ++attempt) {
    EXPECT_FALSE(writer_->Commit(group).ok());
    EXPECT_EQ(TotalsOf(*Reader()).stored, 1u);
    EXPECT_EQ(TotalsOf(*Reader()).captured, 1u);
    EXPECT_EQ(CountSamples(*Reader()), 1u);
    EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value().parents.size(), 3u);
  }
  EXPECT_EQ(writer_->FindSession(collector.info().session_id)->durable_sequence, 1u);
  backend_->FailCommits(false);
  const auto outcomes = writer_->Commit(group).value();
  for (const ShardWriter::Outcome& outcome : outcomes) EXPECT_FALSE(outcome.need_dictionary);
  EXPECT_EQ(outcomes.back().sequence, 4u);
  EXPECT_EQ(CountSamples(*Reader()), 4u);
  EXPECT_EQ(TotalsOf(*Reader()).captured, 4u);
  EXPECT_EQ(Reader()->Processes(kAlways, nullptr)->size(), 4u);
  EXPECT_EQ(Reader()->LoadTrie(DayOf(kNow)).value().parents.size(), 6u);
}

TEST_P(ShardConformance, AsksEvictedSessionsForTheirDictionaryAgain) {
  options_.sessions_max = 2;
  Reopen();
  std::vector<std::unique_ptr<TestCollector>> collectors;
  for (uint8_t i = 1; i <= 3; ++i) {
    collectors.push_back(std::make_unique<TestCollector>("node-" + std::to_string(i), i));
    collectors.back()->Add(At(0), collectors.back()->Thread(1, "a"), collectors.back()->Stack({1}));
    EXPECT_FALSE(CommitOne(collectors.back()->Take(At(0))).need_dictionary);
  }
  ThreadRef thread = collectors[0]->Thread(1, "a");
  collectors[0]->Add(At(1), thread, collectors[0]->Stack({1}));
  RowBatch batch = collectors[0]->Take(At(1));
  ShardWriter::Outcome outcome = CommitOne(batch);
  EXPECT_TRUE(outcome.need_dictionary);
  EXPECT_EQ(outcome.sequence, 1u);
  collectors[0]->StartGeneration();
  EXPECT_EQ(CommitOne(collectors[0]->Resend(batch)).sequence, 2u);
  EXPECT_EQ(TotalsOf(*Reader()).stored, 4u);
}

TEST_P(ShardConformance, AFullTrieCutsStacksAndDropsNoSample) {
  options_.nodes_per_day_max = 4;  // the root and three more
  Reopen();
  TestCollector collector("node-a");
  ThreadRef thread = collector.Thread(1, "a");
  collector.Add(At(0), thread, collector.Stack({1, 2, 3}));
  collector.Add(At(0), thread, collector.Stack({1, 2, 4, 5}));
  CommitOne(collector.Take(At(0)));
  std::vector<NodeNo> nodes;
  std::vector<Ending> endings;
  ASSERT_TRUE(Reader()
                  ->ScanSamples(kAlways,
                                [&](const SampleColumns& columns) {
                                  nodes = columns.nodes;
                                  endings = columns.endings;
                                  return absl::OkStatus();
                                })
                  .ok());
  auto trie = Reader()->LoadTrie(DayOf(kNow)).value();
  ASSERT_EQ(nodes.size(), 2u);
  EXPECT_EQ(endings, (std::vector<Ending>{Ending::kComplete, Ending::kCutByQuota}));
  EXPECT_EQ(Count("tributary_reducer_cut_stacks_total"), 1u);
  EXPECT_EQ(refusals_.Of("node-a"), (std::map<std::string_view, uint64_t>{{"trie_full", 1}}));
  EXPECT_EQ(trie.parents.size(), 4u);
  EXPECT_EQ(trie.parents[nodes[0].value], nodes[1]) << "the second sample gets the deepest node that the stacks share";
}

TEST_P(ShardConformance, SessionsFollowTheirNodeWhenTheNumberOfShardsChanges) {
  std::vector<std::unique_ptr<TestCollector>> collectors;
  for (uint8_t i = 1; i <= 8; ++i) {
    collectors.push_back(std::make_unique<TestCollector>("node-" + std::to_string(i), i));
    collectors.back()->Add(At(0), collectors.back()->Thread(1, "a"), collectors.back()->Stack({1}));
    collectors.back()->Lose(LossReason::kRingFull, i);
    CommitOne(collectors.back()->Take(At(0)));
  }
  writer_.reset();
  store_.reset();
  options_.shards = 3;
  store_ = backend_->Open(options_, clock_, metrics_).value();
  ASSERT_EQ(store_->shard_count(), 3u);
  std::vector<std::unique_ptr<ShardWriter>> writers;
  for (uint32_t shard = 0; shard < 3; ++shard) writers.push_back(store_->OpenWriter(shard).value());
  Totals totals;
  for (uint32_t shard = 0; shard < 3; ++shard) {
    Totals of_shard = TotalsOf(*Reader(shard));
    totals.captured += of_shard.captured;
    totals.stored += of_shard.stored;
    totals.lost += of_shard.lost;
  }
  EXPECT_EQ(totals.captured, 8u + 36u);
  EXPECT_EQ(totals.stored, 8u);
  EXPECT_EQ(totals.lost, 36u);
  EXPECT_EQ(CountSamples(*Reader(0)), 8u) << "samples stay in the shard that stored them";
  for (const auto& collector : collectors) {
    const uint32_t shard = ShardOf(collector->info().node_id, 3);
    EXPECT_EQ(writers[shard]->FindSession(collector->info().session_id)->durable_sequence, 1u);
  }
  // With fewer shards again, the files of the other shards stay readable.
  writers.clear();
  store_.reset();
  options_.shards = 1;
  store_ = backend_->Open(options_, clock_, metrics_).value();
  EXPECT_EQ(store_->shard_count(), 3u);
  EXPECT_EQ(TotalsOf(*Reader(0)).stored, 8u);
}

}  // namespace
}  // namespace tributary::store
