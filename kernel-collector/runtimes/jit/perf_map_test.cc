#include "kernel-collector/runtimes/jit/perf_map.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace tributary {
namespace {

std::vector<std::string> Parse(PerfMapParser& parser, std::string_view bytes) {
  std::vector<std::string> lines;
  parser.Add(bytes, [&](const PerfMapLine& line) {
    lines.push_back(fmt::format("{:x}-{:x} {}", line.start, line.end, line.text));
  });
  return lines;
}

std::vector<std::string> EndOf(PerfMapParser& parser) {
  std::vector<std::string> lines;
  parser.End([&](const PerfMapLine& line) { lines.emplace_back(line.text); });
  return lines;
}

TEST(PerfMap, ParsesLines) {
  const struct {
    std::string_view line, text;
    uint64_t start = 0, end = 0;
  } cases[] = {
      {"7f0012 40 name", "name", 0x7f0012, 0x7f0052},
      {"0x7f0012 0x40 with some blanks", "with some blanks", 0x7f0012, 0x7f0052},
      {"00007F12 1A  void [x] A::B(int)\r", "void [x] A::B(int)", 0x7f12, 0x7f2c},
  };
  for (const auto& c : cases) {
    const auto line = ParsePerfMapLine(c.line);
    ASSERT_TRUE(line) << c.line;
    EXPECT_EQ(line->start, c.start);
    EXPECT_EQ(line->end, c.end);
    EXPECT_EQ(line->text, c.text);
  }
  for (std::string_view line : {"", "x", "12", "12 ", "12 10", "12 10 ", "12 0 size", "zz 10 start", "12 zz size",
                                "ffffffffffffffff 10 overflow", "11112222333344445 1 long", "-1 1 sign"}) {
    EXPECT_FALSE(ParsePerfMapLine(line)) << line;
  }
}

TEST(PerfMap, PartsOfAnySizeGiveTheSameLines) {
  const std::string text =
      "10 1 a\n\n20 2 b c\nbroken\n30 3 " + std::string(3 * PerfMapParser::kLineBytesMax, 'x') + "\n40 4 d\n";
  PerfMapParser whole;
  const auto expected = Parse(whole, text);
  EXPECT_EQ(expected.size(), 4u);
  EXPECT_EQ(whole.malformed(), 1u);
  for (size_t step : {size_t{1}, size_t{7}, PerfMapParser::kLineBytesMax}) {
    PerfMapParser parser;
    std::vector<std::string> lines;
    for (size_t at = 0; at < text.size(); at += step) {
      for (auto& line : Parse(parser, std::string_view(text).substr(at, step))) lines.push_back(line);
    }
    EXPECT_EQ(lines, expected) << step;
  }
}

TEST(PerfMap, WaitsForTheEndOfALine) {
  PerfMapParser parser;
  EXPECT_TRUE(Parse(parser, "10 1 hal").empty());
  EXPECT_EQ(Parse(parser, "f\n"), std::vector<std::string>{"10-11 half"});
  EXPECT_TRUE(Parse(parser, "20 1 last").empty());
  EXPECT_EQ(EndOf(parser), std::vector<std::string>{"last"});
  EXPECT_TRUE(EndOf(parser).empty());
  EXPECT_EQ(Parse(parser, "\n30 1 next\n"), std::vector<std::string>{"30-31 next"});
  EXPECT_EQ(parser.malformed(), 0u);
}

TEST(PerfMap, ALineThatSeemedToBeTheLastMayGoOn) {
  PerfMapParser parser;
  EXPECT_TRUE(Parse(parser, "20 1").empty());
  EXPECT_TRUE(EndOf(parser).empty());
  EXPECT_TRUE(Parse(parser, "0 half").empty());
  EXPECT_EQ(EndOf(parser), std::vector<std::string>{"half"});
  EXPECT_TRUE(Parse(parser, "way").empty());
  EXPECT_EQ(EndOf(parser), std::vector<std::string>{"halfway"});
  EXPECT_EQ(Parse(parser, " there\n30 1 next\n"), (std::vector<std::string>{"20-30 halfway there", "30-31 next"}));
  EXPECT_EQ(parser.malformed(), 0u);
  EXPECT_TRUE(Parse(parser, "broken").empty());
  EXPECT_TRUE(EndOf(parser).empty());
  EXPECT_TRUE(Parse(parser, "\n").empty());
  EXPECT_EQ(parser.malformed(), 1u);
}

TEST(PerfMap, AHugeLineNeedsLittleMemory) {
  PerfMapParser parser;
  const std::string part(1u << 20, '\0');
  for (int i = 0; i < 64; ++i) EXPECT_TRUE(Parse(parser, part).empty());
  EXPECT_EQ(parser.malformed(), 1u);
  EXPECT_EQ(Parse(parser, "\n10 1 a\n"), std::vector<std::string>{"10-11 a"});
}

}  // namespace
}  // namespace tributary
