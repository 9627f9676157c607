#include <gtest/gtest.h>

#include <map>
#include <string>

#include "reducer/store/store_conformance_testing.h"
#include "reducer/store/trie_share.h"

// How the nodes of a day's trie are shared between machines.

namespace tributary::store {

void TrieShareConformance::AddStack(TestCollector& collector, uint32_t depth, UnixNs time) {
  std::vector<uint64_t> addresses;
  for (uint32_t i = 0; i < depth; ++i) addresses.push_back(++next_address_);
  collector.Add(time, collector.Thread(1, "a"), collector.Stack(addresses));
}

TrieShareConformance::Stacks TrieShareConformance::StacksOf(std::string_view node_id) {
  Stacks stacks;
  auto reader = Reader();
  const absl::Status scanned = reader->ScanSamples(kAlways, [&](const SampleColumns& columns) {
    if (columns.node_id != node_id) return absl::OkStatus();
    const auto trie = reader->LoadTrie(columns.day).value();
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      ++stacks.endings[columns.endings[i]];
      ++stacks.depths[StackOf(trie, columns.nodes[i]).size()];
    }
    return absl::OkStatus();
  });
  EXPECT_TRUE(scanned.ok()) << scanned;
  return stacks;
}

size_t TrieShareConformance::Nodes(UnixNs time) { return Reader()->LoadTrie(DayOf(time)).value().parents.size() - 1; }

namespace {

// The default limits divided by 1,024.
constexpr uint32_t kNodesMax = TrieLimits().nodes_max / 1024, kGuaranteed = TrieLimits().machine_nodes_min / 1024;

// 66 samples whose chains have as many nodes as a day's trie: the attack of 17 kB that filled it until midnight. The
// sizes are a 64th of the real ones.
TEST_P(TrieShareConformance, AMachineWithHugeStacksDoesNotCutTheStacksOfOthers) {
  Limit(kNodesMax * 16, kGuaranteed * 16);
  TestCollector honest("honest", 1), hostile("hostile", 2);
  for (int i = 0; i < 5; ++i) AddStack(honest, 20);
  Commit(honest.Take(At(0)));
  for (int i = 0; i < 66; ++i) AddStack(hostile, 131'000 / 66);
  Commit(hostile.Take(At(0)));
  EXPECT_LT(Nodes(), kNodesMax * 16 / 4);
  for (int i = 0; i < 45; ++i) AddStack(honest, 20);
  Commit(honest.Take(At(1)));

  const Stacks whole = StacksOf("honest"), cut = StacksOf("hostile");
  EXPECT_EQ(whole.depths, (std::map<size_t, uint64_t>{{20, 50}}));
  EXPECT_EQ(whole.endings, (std::map<Ending, uint64_t>{{Ending::kComplete, 50}}));
  ASSERT_TRUE(cut.endings.contains(Ending::kCutByQuota));
  const uint64_t cut_stacks = cut.endings.at(Ending::kCutByQuota);
  EXPECT_GT(cut_stacks, 50u);
  EXPECT_EQ(cut.depths.at(131'000 / 66), 66 - cut_stacks) << "only whole stacks count as complete";
  EXPECT_EQ(CutStacks(), cut_stacks);
  EXPECT_TRUE(refusals_.Of("honest").empty());
  EXPECT_EQ(refusals_.Of("hostile"), (std::map<std::string_view, uint64_t>{{"trie_quota", cut_stacks}}));
  const std::vector<NodeStatus> nodes = Reader()->Nodes().value();
  for (const NodeStatus& node : nodes) {
    EXPECT_EQ(node.endings[static_cast<size_t>(Ending::kCutByQuota)], node.node_id == "hostile" ? cut_stacks : 0);
    EXPECT_EQ(node.stored.total(), node.accounting.captured.total()) << "a cut sample is stored";
  }
}

TEST_P(TrieShareConformance, AHundredMachinesFitBesideAGreedyOne) {
  Limit(kNodesMax, kGuaranteed);
  TestCollector greedy("greedy");
  for (int i = 0; i < 90; ++i) AddStack(greedy, 100);
  Commit(greedy.Take(At(0)));
  EXPECT_NEAR(static_cast<double>(Nodes()), kNodesMax / 5, 2);
  for (int machine = 0; machine < 100; ++machine) {
    const std::string name = "node-" + std::to_string(machine);
    TestCollector collector(name, static_cast<uint8_t>(100 + machine));
    CommitStack(collector, kGuaranteed);
    ASSERT_EQ(StacksOf(name).endings, (std::map<Ending, uint64_t>{{Ending::kComplete, 1}})) << machine;
  }
  // A machine that is at its share gets nothing of what is left.
  const size_t before = Nodes();
  CommitStack(greedy, 100);
  EXPECT_EQ(Nodes(), before);
}

TEST_P(TrieShareConformance, NodesThatAnotherMachineHasAddedDoNotCount) {
  Limit(200, kGuaranteed);
  TestCollector first("first", 1), second("second", 2);
  for (TestCollector* collector : {&first, &second}) {
    std::vector<uint64_t> addresses;
    for (uint64_t i = 0; i < kGuaranteed; ++i) addresses.push_back(1'000'000 + i);
    collector->Add(At(0), collector->Thread(1, "a"), collector->Stack(addresses));
    Commit(collector->Take(At(0)));
  }
  CommitStack(second, kGuaranteed);
  EXPECT_EQ(CutStacks(), 0u);
  CommitStack(first, 1);
  EXPECT_EQ(CutStacks(), 1u);
  EXPECT_EQ(StacksOf("first").depths, (std::map<size_t, uint64_t>{{0, 1}, {kGuaranteed, 1}}));
}

TEST_P(TrieShareConformance, ARestartGivesNoNewShare) {
  for (const uint32_t guaranteed : {kGuaranteed, 16 * kGuaranteed}) {
    Limit(guaranteed * 3, guaranteed);
    const UnixNs time = clock_.Unix();
    TestCollector collector("greedy-" + std::to_string(guaranteed), static_cast<uint8_t>(guaranteed / kGuaranteed));
    for (uint32_t i = 0; i < guaranteed / 16 - 1; ++i) CommitStack(collector, 16, time);
    CommitStack(collector, 15, time);
    const uint64_t cut_before = CutStacks();
    ASSERT_EQ(Nodes(time), guaranteed - 1);
    Reopen();
    collector.StartGeneration();
    for (int i = 0; i < 20; ++i) CommitStack(collector, 10, time);
    EXPECT_GE(Nodes(time), guaranteed);
    EXPECT_LE(Nodes(time), guaranteed + guaranteed / 64) << "a small part of the count is not written";
    EXPECT_GT(CutStacks(), cut_before);
    clock_.Advance(kNsPerDay);
  }
}

TEST_P(TrieShareConformance, AFailedCommitDoesNotCount) {
  Limit(200, kGuaranteed);
  TestCollector collector("node-a");
  AddStack(collector, kGuaranteed);
  const RowBatch batch = collector.Take(At(0));
  backend_->FailCommits(true);
  for (int i = 0; i < 3; ++i) ASSERT_FALSE(writer_->Commit({&batch, 1}).ok());
  backend_->FailCommits(false);
  Commit(batch);
  EXPECT_EQ(CutStacks(), 0u);
  EXPECT_EQ(StacksOf("node-a").endings, (std::map<Ending, uint64_t>{{Ending::kComplete, 1}}));
}

TEST_P(TrieShareConformance, EachDayHasItsOwnShares) {
  Limit(200, kGuaranteed);
  TestCollector collector("node-a");
  CommitStack(collector, kGuaranteed + 1);
  EXPECT_EQ(CutStacks(), 1u);
  clock_.Advance(kNsPerDay);
  const UnixNs tomorrow = clock_.Unix();
  CommitStack(collector, kGuaranteed, tomorrow);
  EXPECT_EQ(CutStacks(), 1u);
  EXPECT_EQ(Nodes(), kGuaranteed);
  EXPECT_EQ(Nodes(tomorrow), kGuaranteed);
}

// More days than the writer has in memory: a day's counts must be in the file when the writer drops the day.
TEST_P(TrieShareConformance, ADayThatTheWriterDropsKeepsItsShares) {
  options_.raw_age_ns = options_.sum_age_ns;
  Limit(16 * 200, 16 * kGuaranteed);
  constexpr int kDays = 5;
  clock_.Advance((kDays - 1) * kNsPerDay);
  TestCollector collector("node-a");
  for (int round = 0; round < 12; ++round) {
    for (int day = 0; day < kDays; ++day) CommitStack(collector, 100, At(day * 86'400));
  }
  for (int day = 0; day < kDays; ++day) EXPECT_EQ(Nodes(At(day * 86'400)), 16 * kGuaranteed) << day;
}

// A node without a frame must not stand for a frame that the trie has no room for.
TEST_P(TrieShareConformance, AFrameWithoutRoomIsNotNoFrame) {
  Limit(3, kGuaranteed);
  TestCollector collector("node-a");
  Dictionary& dictionary = collector.dictionary();
  const NodeRef empty = dictionary.InternNode({dictionary.InternNode({NodeRef{}, FrameRef{0}}), FrameRef{0}});
  collector.Add(At(0), collector.Thread(1, "a"), empty);
  Commit(collector.Take(At(0)));
  CommitStack(collector, 2);
  EXPECT_EQ(StacksOf("node-a").depths, (std::map<size_t, uint64_t>{{0, 1}, {2, 1}}));
}

}  // namespace
}  // namespace tributary::store
