#include "cli/flame_graph.h"

#include <gtest/gtest.h>

#include "cli/cli_data_testing.h"
#include "cli/folded.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

TEST(FlameGraph, MergeAddsEqualPathsAndKeepsOthers) {
  FlameGraph a = *ParseFlameGraph(testing::kFlameGraphJson), b = a;
  b.names[2] = "other";
  b.from_ms -= 1000;
  FlameGraph merged = Merge({a, b, FlameGraph()});
  EXPECT_EQ(merged.nodes.size(), 6u);
  EXPECT_EQ(merged.total, (Values{2'000'000'000, 200}));
  EXPECT_EQ(merged.nodes[0].total.count, 200u);
  EXPECT_EQ(merged.from_ms, b.from_ms);
  EXPECT_EQ(merged.to_ms, a.to_ms);
  EXPECT_EQ(merged.truncated_nodes, 6u);
  EXPECT_EQ(WriteFolded(merged, Unit::kCount, true),
            "main;a:b \"c\"\\x0a\\x1b[31m_[i] 20\n"
            "main;do_syscall_64_[k] 60\n"
            "main;other 60\n"
            "main;spin<int>(int&) 60\n");
  EXPECT_EQ(Merge({}).nodes.size(), 1u);
}

TEST(FlameGraph, SortsChildrenByValueThenName) {
  FlameGraph graph;
  graph.names = {"all", "b", "a", "big"};
  graph.nodes = {{.parent = -1, .total = {9, 9}},
                 {.parent = 0, .name = 1, .total = {2, 2}},
                 {.parent = 0, .name = 2, .total = {2, 2}},
                 {.parent = 0, .name = 3, .total = {5, 1}}};
  EXPECT_EQ(SortedChildren(graph, Unit::kValue)[0], (std::vector<int32_t>{3, 2, 1}));
  EXPECT_EQ(SortedChildren(graph, Unit::kCount)[0], (std::vector<int32_t>{2, 1, 3}));
}

TEST(FlameGraph, TopCountsARecursiveFunctionOnce) {
  FlameGraph graph;
  graph.names = {"all", "f", "g"};
  graph.nodes = {{.parent = -1, .total = {10, 10}},
                 {.parent = 0, .name = 1, .kind = kNative, .self = {1, 1}, .total = {10, 10}},
                 {.parent = 1, .name = 2, .kind = kNative, .self = {2, 2}, .total = {9, 9}},
                 {.parent = 2, .name = 1, .kind = kNative, .self = {7, 7}, .total = {7, 7}}};
  auto top = TopFunctions(graph, 10);
  ASSERT_EQ(top.size(), 2u);
  EXPECT_EQ(top[0].name, "f");
  EXPECT_EQ(top[0].self.ns, 8u);
  EXPECT_EQ(top[0].total.ns, 10u);
  EXPECT_EQ(TopFunctions(graph, 1).size(), 1u);
}

}  // namespace
}  // namespace tributary::cli
