#include "cli/json_reader.h"

#include <gtest/gtest.h>

#include "cli/cli_data_testing.h"

namespace tributary::cli {
namespace {

std::string Replaced(std::string_view text, std::string_view from, std::string_view to) {
  std::string out(text);
  size_t at = out.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return out.replace(at, from.size(), to);
}

TEST(JsonReader, ReadsAFlameGraph) {
  auto graph = ParseFlameGraph(testing::kFlameGraphJson);
  ASSERT_TRUE(graph.ok()) << graph.status();
  ASSERT_EQ(graph->nodes.size(), 5u);
  EXPECT_EQ(graph->from_ms, 1763710000000);
  EXPECT_EQ(graph->total, (Values{1'000'000'000, 100}));
  EXPECT_EQ(graph->truncated_nodes, 3u);
  EXPECT_EQ(graph->NameOf(graph->nodes[2]), "spin<int>(int&)");
  EXPECT_EQ(graph->ExecutableOf(graph->nodes[2]), "truth&<script>");
  EXPECT_EQ(graph->ExecutableOf(graph->nodes[3]), "");
  EXPECT_EQ(graph->nodes[3].kind, kKernel);
  EXPECT_EQ(graph->nodes[4].self, (Values{100'000'000, 10}));
}

// Answers of earlier releases have no kinds, or kinds without languages.
TEST(JsonReader, KnowsWhetherKindsHaveLanguages) {
  for (const auto& [language, has_languages] : {std::pair("", false), std::pair(R"(, "language": "native")", true)}) {
    const std::string kinds = std::string(R"({"kinds": [{}, {"name": "native")") + language + "}, {}, {}, {}], ";
    const auto graph = ParseFlameGraph(Replaced(testing::kFlameGraphJson, "{", kinds));
    ASSERT_TRUE(graph.ok()) << graph.status();
    EXPECT_EQ(graph->has_languages, has_languages);
    const auto top = ParseTop(kinds + R"("total": {}, "functions": []})");
    ASSERT_TRUE(top.ok()) << top.status();
    EXPECT_EQ(top->has_languages, has_languages);
  }
  EXPECT_FALSE(ParseFlameGraph(testing::kFlameGraphJson)->has_languages);
}

TEST(JsonReader, RefusesTreesThatCannotBeWalked) {
  std::string_view good = testing::kFlameGraphJson;
  for (const std::string& bad : {
           Replaced(good, "\"parent\": [-1, 0, 1, 1, 1]", "\"parent\": [-1, 0, 2, 1, 1]"),
           Replaced(good, "\"parent\": [-1, 0, 1, 1, 1]", "\"parent\": [-1, -1, 1, 1, 1]"),
           Replaced(good, "\"parent\": [-1, 0, 1, 1, 1]", "\"parent\": [0, 0, 1, 1, 1]"),
           Replaced(good, "\"parent\": [-1, 0, 1, 1, 1]", "\"parent\": []"),
           Replaced(good, "\"name\": [0, 1, 2, 3, 4]", "\"name\": [0, 1, 2, 3, 5]"),
           Replaced(good, "\"name\": [0, 1, 2, 3, 4]", "\"name\": [0, 1, 2, 3]"),
           Replaced(good, "\"name\": [0, 1, 2, 3, 4]", "\"name\": [0, 1, 2, 3, -1]"),
           Replaced(good, "\"name\": [0, 1, 2, 3, 4]", "\"name\": [0, 1, 2, 3, 9999999999]"),
           Replaced(good, "\"executable\": [-1, 0, 0, -1, 0]", "\"executable\": [-1, 0, 1, -1, 0]"),
           Replaced(good, "\"self_ns\": [0", "\"self_ns\": [\"0\""),
           Replaced(good, "\"kind\"", "\"kinds\""),
           std::string("[]"),
           std::string("<html>"),
           std::string(""),
       }) {
    EXPECT_EQ(ParseFlameGraph(bad).status().code(), absl::StatusCode::kInvalidArgument) << bad;
  }
}

TEST(JsonReader, ReadsStatus) {
  auto status = ParseStatus(testing::kStatusJson);
  ASSERT_TRUE(status.ok()) << status.status();
  EXPECT_EQ(status->total.captured, 1140u);
  EXPECT_EQ(status->total.TotalLost(), 35u);
  EXPECT_EQ(status->total.in_flight, 5u);
  ASSERT_EQ(status->nodes.size(), 1u);
  EXPECT_TRUE(status->nodes[0].connected);
  EXPECT_EQ(status->nodes[0].totals.lost, (Counts{{"ring_full", 30}, {"stack_error", 5}}));
  EXPECT_EQ(status->symbol_tables, 12u);
  ASSERT_EQ(status->refusals.size(), 1u);
  EXPECT_EQ(status->refusals[0].reason, "trie_quota");
  EXPECT_EQ(status->refusals[0].amount, 1200u);
  EXPECT_FALSE(ParseStatus("{}").ok());
}

TEST(JsonReader, ReadsStackHealth) {
  auto health = ParseStackHealth(testing::kStackHealthJson);
  ASSERT_TRUE(health.ok()) << health.status();
  EXPECT_EQ(health->samples, 1000u);
  EXPECT_EQ(health->endings.size(), 4u);
  EXPECT_EQ(health->endings[2], (std::pair<std::string, uint64_t>("no_table", 40)));
  EXPECT_DOUBLE_EQ(health->complete_share.value(), 0.947368);
  ASSERT_EQ(health->executables.size(), 2u);
  EXPECT_EQ(health->executables[0].build_id, "ab01");
  EXPECT_EQ(health->executables[0].programs.size(), 2u);
  EXPECT_EQ(health->truncated_executables, 3u);
  auto nothing = ParseStackHealth(R"({"samples":0,"endings":{},"complete_share":null,"executables":[]})");
  ASSERT_TRUE(nothing.ok()) << nothing.status();
  EXPECT_FALSE(nothing->complete_share.has_value());
  EXPECT_FALSE(ParseStackHealth(R"({"samples":0})").ok());
  EXPECT_FALSE(ParseStackHealth(R"({"endings":{},"executables":[1]})").ok());
  EXPECT_FALSE(ParseStackHealth(R"({"endings":{},"executables":[{"name":"a"}]})").ok());
}

TEST(JsonReader, ReadsLinesAndTheNumberOfComingFiles) {
  const auto lines = ParseLines(
      R"({"function":"f","executable":"","lines":[{"file":"/a.c","line":3,"text":null,"self_ns":1,"self_count":2,)"
      R"("total_ns":3,"total_count":4,"addresses":[]}],"sources":[],"sources_coming":["/a.c"]})");
  ASSERT_TRUE(lines.ok()) << lines.status();
  ASSERT_EQ(lines->lines.size(), 1u);
  EXPECT_EQ(lines->lines[0].file, "/a.c");
  EXPECT_EQ(lines->lines[0].line, 3u);
  EXPECT_EQ(lines->lines[0].text, "");
  EXPECT_EQ(lines->lines[0].total.ns, 3u);
  EXPECT_EQ(lines->files_coming, 1u);
  EXPECT_FALSE(ParseLines(R"({"lines":[]})").ok());
}

TEST(JsonReader, AppendsLinesToNames) {
  const std::string json = Replaced(Replaced(testing::kFlameGraphJson, "\"nodes\": {",
                                             R"("files": ["/srv/app.py"], "nodes": {"file": [-1, 0, 0, -1, 0],
                                                "line": [0, 12, 0, 7, 12], )"),
                                    R"("name": [0, 1, 2, 3, 4])", R"("name": [0, 1, 2, 3, 1])");
  const auto graph = ParseFlameGraph(json);
  ASSERT_TRUE(graph.ok()) << graph.status();
  std::vector<std::string> names;
  for (const FlameGraph::Node& node : graph->nodes) names.push_back(graph->NameOf(node));
  EXPECT_EQ(names, (std::vector<std::string>{"all", "main (app.py:12)", "spin<int>(int&)", "do_syscall_64 (?:7)",
                                             "main (app.py:12)"}));
  EXPECT_FALSE(ParseFlameGraph(Replaced(json, "\"line\": [0, ", "\"line\": [")).ok());
  const auto top = ParseTop(Replaced(testing::kTopJson, "\"executable\": \"truth\",",
                                     R"("executable": "truth", "file": "/src/spin.c", "line": 4,)"));
  ASSERT_TRUE(top.ok()) << top.status();
  EXPECT_EQ(top->functions[0].name, "spin (spin.c:4)");
}

TEST(JsonReader, ReadsTopSeriesErrorsAndPorts) {
  auto top = ParseTop(testing::kTopJson);
  ASSERT_TRUE(top.ok());
  ASSERT_EQ(top->functions.size(), 2u);
  EXPECT_EQ(top->functions[1].kind, kKernel);
  EXPECT_EQ(top->functions[1].total.count, 90u);
  auto series = ParseSeries(testing::kSeriesJson);
  ASSERT_TRUE(series.ok());
  EXPECT_TRUE(series->truncated);
  ASSERT_EQ(series->processes.size(), 2u);
  EXPECT_EQ(series->processes[1].parent_pid, 100);
  EXPECT_EQ(ParseErrorBody("{\"error\": \"no such label\"}"), "no such label");
  EXPECT_EQ(ParseErrorBody("<html>"), "");
  auto ports = ParsePorts("{\"intake\":8001,\"http\":4041}");
  ASSERT_TRUE(ports.ok());
  EXPECT_EQ(ports->http, 4041);
  EXPECT_FALSE(ParsePorts("{\"intake\":8001}").ok());
  EXPECT_FALSE(ParsePorts("{\"intake\":8001,\"http\":70000}").ok());
}

}  // namespace
}  // namespace tributary::cli
