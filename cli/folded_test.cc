#include "cli/folded.h"

#include <gtest/gtest.h>

#include "cli/cli_data_testing.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

TEST(Folded, WritesOneLineAStackWithEscapedNames) {
  FlameGraph graph = *ParseFlameGraph(testing::kFlameGraphJson);
  EXPECT_EQ(WriteFolded(graph, Unit::kCount, true),
            "main;a:b \"c\"\\x0a\\x1b[31m_[i] 10\n"
            "main;do_syscall_64_[k] 30\n"
            "main;spin<int>(int&) 60\n");
  EXPECT_EQ(WriteFolded(graph, Unit::kValue, false),
            "main;a:b \"c\"\\x0a\\x1b[31m 100000000\n"
            "main;do_syscall_64 300000000\n"
            "main;spin<int>(int&) 600000000\n");
}

TEST(Folded, AddsStacksWithTheSameTextAndSkipsEmptyOnes) {
  FlameGraph graph;
  graph.names = {"all", "f", "g", ""};
  graph.executables = {"x", "y"};
  graph.nodes = {{.parent = -1, .self = {7, 1}},
                 {.parent = 0, .name = 1, .executable = 0, .kind = kNative, .self = {1, 1}},
                 {.parent = 0, .name = 1, .executable = 1, .kind = kNative, .self = {2, 1}},
                 {.parent = 0, .name = 2, .kind = kNative},
                 {.parent = 3, .name = 3, .kind = kUnknown, .self = {4, 1}}};
  EXPECT_EQ(WriteFolded(graph, Unit::kValue, true), "f 3\ng;[unnamed] 4\n");
  EXPECT_EQ(WriteFolded(FlameGraph(), Unit::kValue, true), "");
}

}  // namespace
}  // namespace tributary::cli
