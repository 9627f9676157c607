#include "cli/picture.h"

#include <gtest/gtest.h>

#include <cstdio>

#include "cli/cli_data_testing.h"
#include "cli/json_reader.h"

namespace tributary::cli {
namespace {

// Checks that python's XML parser accepts the text. Returns what a small program prints about it.
std::string AskPython(const std::string& xml, const std::string& program) {
  char path[] = "/tmp/tributary_svg_XXXXXX";
  int fd = mkstemp(path);
  FILE* file = fdopen(fd, "w");
  fwrite(xml.data(), 1, xml.size(), file);
  fclose(file);
  std::string command = "python3 -c 'import sys, xml.etree.ElementTree as E; t = E.parse(sys.argv[1]).getroot(); " +
                        program + "' " + path + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char chunk[4096];
  while (size_t n = fread(chunk, 1, sizeof(chunk), pipe)) out.append(chunk, n);
  pclose(pipe);
  remove(path);
  return out;
}

size_t Count(std::string_view text, std::string_view part) {
  size_t count = 0;
  for (size_t at = text.find(part); at != std::string_view::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

TEST(EscapeXml, LeavesNoMarkup) {
  EXPECT_EQ(EscapeXml("a<b>&\"'"), "a&lt;b&gt;&amp;&quot;&#39;");
  EXPECT_EQ(EscapeXml(std::string_view("\x1b[31m\0\x7f", 7)), "\\x1b[31m\\x00\\x7f");
  EXPECT_EQ(EscapeXml("gr\xc3\xbc\xc3\x9f \xff \xed\xa0\x80"), "gr\xc3\xbc\xc3\x9f \\xff \\xed\\xa0\\x80");
  EXPECT_EQ(EscapeXml("\xef\xbf\xbf"), "\\xef\\xbf\\xbf");
}

TEST(FrameColor, IsTheSameEverywhereAndDistinguishesKinds) {
  EXPECT_EQ(FrameColor("main", "file"), FrameColor("main", "file"));
  EXPECT_NE(FrameColor("main", "file"), FrameColor("spin", "file"));
  EXPECT_NE(FrameColor("main", "python"), FrameColor("main", "file"));
  EXPECT_NE(FrameColor("main", "jit"), FrameColor("main", "file"));
  for (const char* name : {"a", "b", "main", "do_syscall_64", "x::y::z"}) {
    unsigned native = 0, kernel = 0;
    sscanf(FrameColor(name, "file").c_str(), "#%x", &native);
    sscanf(FrameColor(name, "kernel").c_str(), "#%x", &kernel);
    EXPECT_GT(native >> 16, native & 0xff) << name;  // more red than blue
    EXPECT_LT(kernel >> 16, kernel & 0xff) << name;
  }
}

TEST(Picture, SvgIsXmlWithATooltipAFrame) {
  FlameGraph graph = *ParseFlameGraph(testing::kFlameGraphJson);
  std::string svg = WriteSvg(graph, {.title = "{comm=\"<b>\"}"});
  EXPECT_EQ(AskPython(svg, "print(t.tag, len([g for g in t.iter() if g.get(\"class\") == \"f\"]))"),
            "{http://www.w3.org/2000/svg}svg 5\n");
  std::string titles = AskPython(svg, "print([e.text for e in t.iter() if e.tag.endswith(\"}title\")])");
  EXPECT_NE(
      titles.find("spin<int>(int&)\\ntruth&<script>\\ntotal 600.0 ms (60.00%), self 600.0 ms (60.00%), 60 samples"),
      std::string::npos)
      << titles;
  EXPECT_NE(svg.find("comm=&quot;&lt;b&gt;"), std::string::npos);
  EXPECT_EQ(Count(svg, "<script>"), 1u);  // only ours
  EXPECT_EQ(Count(svg, "http"), 1u);      // the XML namespace: nothing is fetched
  EXPECT_NE(svg.find("Small frames are left out: 3 or more."), std::string::npos);
}

TEST(Picture, FramesLieWithinTheirParents) {
  FlameGraph graph = *ParseFlameGraph(testing::kFlameGraphJson);
  std::string rows =
      AskPython(WriteSvg(graph, {.unit = Unit::kCount}),
                "print([(round(float(g.get(\"data-x\"))), round(float(g.get(\"data-w\"))), g.get(\"data-d\"))"
                " for g in t.iter() if g.get(\"class\") == \"f\"])");
  EXPECT_EQ(rows, "[(12, 1176, '0'), (12, 1176, '1'), (12, 706, '2'), (718, 353, '2'), (1070, 118, '2')]\n");
}

TEST(Picture, NamesTheMeasureOfWidths) {
  FlameGraph graph = *ParseFlameGraph(testing::kFlameGraphJson);
  EXPECT_EQ(Count(WriteSvg(graph, {}), "The width of a frame is its share of CPU time."), 1u);
  EXPECT_EQ(Count(WriteSvg(graph, {.unit = Unit::kCount}), "The width of a frame is its share of the samples."), 1u);
  graph.measure = {.type = "<b>alloc", .unit = "bytes"};
  const std::string svg = WriteSvg(graph, {});
  EXPECT_EQ(Count(svg, "The width of a frame is its share of &lt;b&gt;alloc."), 1u);
  EXPECT_EQ(Count(svg, "CPU time"), 0u);
}

TEST(Picture, HtmlIsOnePageWithTheSameFrames) {
  FlameGraph graph = *ParseFlameGraph(testing::kFlameGraphJson);
  std::string html = WriteHtml(graph, {.title = "</title><script>x"});
  EXPECT_TRUE(html.starts_with("<!DOCTYPE html>"));
  EXPECT_EQ(Count(html, "<g class=\"f\""), 5u);
  EXPECT_EQ(Count(html, "<script>"), 1u);
  EXPECT_EQ(Count(html, "src="), 0u);
  EXPECT_EQ(Count(html, "href="), 0u);
}

TEST(Picture, ReportsWhenThereAreNoSamples) {
  FlameGraph empty = Merge({});
  std::string svg = WriteSvg(empty, {.title = "x"});
  EXPECT_NE(svg.find("No samples match."), std::string::npos);
  EXPECT_EQ(AskPython(svg, "print(1)"), "1\n");
}

// Deeper than any recursion could go, wider than a screen.
TEST(Picture, HandlesDeepAndWideGraphs) {
  FlameGraph graph;
  graph.names = {"all", "f"};
  graph.nodes.push_back({.parent = -1, .total = {100'000, 100'000}});
  for (int i = 0; i < 20'000; ++i) {
    graph.nodes.push_back({.parent = i, .name = 1, .kind = kNative, .total = {100'000, 100'000}});
  }
  for (int i = 0; i < 90'000; ++i) {
    graph.nodes.push_back({.parent = 20'000, .name = 1, .kind = kNative, .self = {1, 1}, .total = {1, 1}});
  }
  std::string svg = WriteSvg(graph, {.title = "deep"});
  EXPECT_LE(Count(svg, "<g class=\"f\""), 30'000u);
  EXPECT_GT(Count(svg, "<g class=\"f\""), 20'000u);
}

}  // namespace
}  // namespace tributary::cli
