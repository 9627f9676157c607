#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

#include "reducer/store/store_conformance_testing.h"

// A day's trie, as a whole and in part.

namespace tributary::store {
namespace {

std::vector<NodeNo> LeavesOf(const std::vector<SampleColumns>& chunks) {
  std::vector<NodeNo> leaves;
  for (const SampleColumns& chunk : chunks) leaves.insert(leaves.end(), chunk.nodes.begin(), chunk.nodes.end());
  return leaves;
}

void ExpectParentsFirst(const TrieView& trie) {
  ASSERT_EQ(trie.parents.size(), trie.frames.size());
  for (size_t i = 1; i < trie.parents.size(); ++i) {
    ASSERT_LT(trie.parents[i].value, i);
    ASSERT_LT(trie.frames[i], trie.frame_rows.size());
  }
}

// Returns the whole frame rows from the node up.
std::vector<FrameRow> FramesOf(const TrieView& trie, NodeNo node) {
  std::vector<FrameRow> rows;
  for (; node.value != 0; node = trie.parents[node.value]) rows.push_back(trie.frame_rows[trie.frames[node.value]]);
  return rows;
}

// Counts the given nodes and all their ancestors, including the root.
size_t CountAncestors(const TrieView& trie, const std::vector<NodeNo>& leaves) {
  std::set<uint32_t> ancestors = {0};
  for (NodeNo node : leaves) {
    for (; node.value != 0; node = trie.parents[node.value]) ancestors.insert(node.value);
  }
  return ancestors.size();
}

void ExpectSame(const TrieView& whole, const TriePart& part, const std::vector<NodeNo>& leaves) {
  ExpectParentsFirst(whole);
  ExpectParentsFirst(part.trie);
  ASSERT_EQ(part.nodes.size(), leaves.size());
  for (size_t i = 0; i < leaves.size(); ++i) {
    ASSERT_LT(part.nodes[i].value, part.trie.parents.size());
    ASSERT_EQ(FramesOf(part.trie, part.nodes[i]), FramesOf(whole, leaves[i])) << leaves[i].value;
  }
  EXPECT_EQ(part.trie.parents.size(), CountAncestors(whole, leaves)) << "only the leaves and their ancestors";
}

TEST_P(TrieConformance, APartHasTheLeavesAndTheirAncestors) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  for (uint64_t i = 0; i < 50; ++i) collector.Add(At(0), thread, collector.Stack({1, i % 5, 100 + i}), i);
  Commit(collector.Take(At(0)));
  auto reader = Reader();
  const Day day = DayOf(kNow);
  const TrieView whole = reader->LoadTrie(day).value();
  std::vector<NodeNo> leaves = LeavesOf(Chunks(*reader));
  ASSERT_EQ(leaves.size(), 50u);
  ExpectSame(whole, reader->LoadTriePart(day, leaves).value(), leaves);
  leaves = {leaves[3], leaves[40], leaves[3], whole.parents[leaves[7].value], NodeNo{0}};
  ExpectSame(whole, reader->LoadTriePart(day, leaves).value(), leaves);
  ExpectSame(whole, reader->LoadTriePart(day, {}).value(), {});
}

TEST_P(TrieConformance, NodesUnknownToTheDayBecomeTheRoot) {
  const NodeNo strange[] = {NodeNo{77}, NodeNo{UINT32_MAX}};
  TriePart part = Reader()->LoadTriePart(DayOf(kNow), strange).value();
  EXPECT_EQ(part.nodes, (std::vector<NodeNo>{NodeNo{0}, NodeNo{0}})) << "a day without data";
  TestCollector collector("node-a");
  collector.Add(At(0), collector.Thread(1, "a"), collector.Stack({1, 2}));
  Commit(collector.Take(At(0)));
  part = Reader()->LoadTriePart(DayOf(kNow), strange).value();
  EXPECT_EQ(part.nodes, (std::vector<NodeNo>{NodeNo{0}, NodeNo{0}}));
  EXPECT_EQ(part.trie.parents.size(), 1u);
}

// A part is right whatever was loaded before, as a whole or in part, and however many nodes came since.
TEST_P(TrieConformance, PartsGrowWithTheDay) {
  TestCollector collector("node-a");
  const ThreadRef thread = collector.Thread(1, "a");
  const Day day = DayOf(kNow);
  std::mt19937_64 random(3);
  std::unique_ptr<StoreReader> early;
  std::vector<NodeNo> early_leaves;
  for (int round = 0; round < 12; ++round) {
    const uint64_t nodes = round % 4 == 3 ? 3000 : 30;
    for (uint64_t i = 0; i < nodes; ++i) {
      collector.Add(At(0), thread, collector.Stack({1, random() % 20, random() % 100'000}));
    }
    Commit(collector.Take(At(0)));
    auto reader = Reader();
    std::vector<NodeNo> leaves = LeavesOf(Chunks(*reader));
    std::shuffle(leaves.begin(), leaves.end(), random);
    leaves.resize(20);
    const TriePart part = reader->LoadTriePart(day, leaves).value();
    if (round == 2) {
      early = std::move(reader);
      early_leaves = leaves;
      continue;
    }
    ASSERT_NO_FATAL_FAILURE(ExpectSame(Reader()->LoadTrie(day).value(), part, leaves)) << round;
    // From here on parts are loaded after parts, and the whole trie is loaded late.
    if (round > 3 && round < 11) {
      for (uint64_t i = 0; i < 10; ++i) collector.Add(At(0), thread, collector.Stack({1, 2, random()}));
      Commit(collector.Take(At(0)));
      const std::vector<NodeNo> all = LeavesOf(Chunks(*Reader()));
      const TriePart of_all = Reader()->LoadTriePart(day, all).value();
      ASSERT_NO_FATAL_FAILURE(ExpectSame(Reader()->LoadTrie(day).value(), of_all, all)) << round;
    }
  }
  const TriePart part = early->LoadTriePart(day, early_leaves).value();
  ExpectSame(Reader()->LoadTrie(day).value(), part, early_leaves);
}

TEST_P(TrieConformance, FramesKeepAllTheirFields) {
  Dictionary rows;
  const ExecutableRef executable =
      rows.InternExecutable(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, "build"), "/srv/app");
  Frame frame{FrameKind::kNative, true, executable, 0x10};
  frame.position = 7;
  frame.name = rows.InternString("handler");
  const std::vector<Frame> stack = {frame, {FrameKind::kKernel, false, ExecutableRef{}, 0x20}};
  const ThreadRef thread = rows.InternThread({rows.InternProcess({}), Tid{8}, StringRef{}});
  RowBatch batch;
  batch.source = {SourceKind::kImport, "trie"};
  batch.node = std::make_shared<NodeInfo>(NodeInfo{.node_id = "importer"});
  batch.clock = {MonotonicNs{At(0).value}, At(0)};
  batch.samples.push_back({.time = MonotonicNs{At(0).value}, .thread = thread, .node = rows.InternStack(stack)});
  batch.definitions = rows.DefinedSince({});
  Commit(batch);
  auto reader = Reader();
  const std::vector<NodeNo> leaves = LeavesOf(Chunks(*reader));
  const TriePart part = reader->LoadTriePart(DayOf(kNow), leaves).value();
  const std::vector<FrameRow> found = FramesOf(part.trie, part.nodes.at(0));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, FrameKind::kKernel);
  EXPECT_EQ(found[0].executable, ExecutableNo{0});
  EXPECT_FALSE(found[0].is_caller);
  EXPECT_TRUE(found[1].is_caller);
  EXPECT_EQ(found[1].address, 0x10u);
  EXPECT_EQ(found[1].position, 7u);
  EXPECT_EQ(reader->Text(found[1].name).value(), "handler");
  EXPECT_EQ(reader->Executables()->at(found[1].executable.value).path, "/srv/app");
  ExpectSame(reader->LoadTrie(DayOf(kNow)).value(), part, leaves);
}

}  // namespace
}  // namespace tributary::store
