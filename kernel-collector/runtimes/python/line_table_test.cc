#include "kernel-collector/runtimes/python/line_table.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tributary {
namespace {

using Lines = PythonLayout::Lines;

std::string Table(std::vector<int> bytes) {
  std::string out;
  for (int byte : bytes) out += static_cast<char>(byte);
  return out;
}

std::vector<uint32_t> LinesAt(const PythonLines& lines, const std::vector<int32_t>& positions) {
  std::vector<uint32_t> out;
  for (int32_t position : positions) out.push_back(lines.LineAt(position));
  return out;
}

TEST(PythonLines, KeepsALimitedNumberOfRuns) {
  std::string table;
  for (int i = 0; i < 24'000; ++i) table += Table({2, i % 2 == 0 ? 1 : -1});
  const PythonLines lines(Lines::kDeltas, table, 10, false);
  EXPECT_LE(lines.bytes(), PythonLines::kRunsMax * 8);
  constexpr int32_t kEnd = 2 * PythonLines::kRunsMax;
  EXPECT_EQ(LinesAt(lines, {0, 2, 4, kEnd - 2, kEnd, kEnd + 2, 100'000}),
            (std::vector<uint32_t>{10, 11, 10, 11, 0, 0, 0}));
}

TEST(PythonLines, DecodesDeltas) {
  // Two entries without a distance add their lines; a distance above 255 and a line delta above 127 need two entries.
  PythonLines lines(Lines::kDeltas, Table({0, 1, 6, 2, 255, 0, 1, 127, 0, 3, 4, -5}), 10, false);
  EXPECT_EQ(LinesAt(lines, {-2, 0, 4, 6, 260, 262, 266, 100'000}),
            (std::vector<uint32_t>{10, 11, 11, 13, 13, 143, 138, 138}));
}

TEST(PythonLines, DecodesRanges) {
  // The second range has no line. An entry of size 0 only moves the line.
  PythonLines lines(Lines::kRanges, Table({4, 0, 2, -128, 0, 100, 6, -1}), 10, false);
  EXPECT_EQ(LinesAt(lines, {-2, 0, 2, 4, 6, 10, 12}), (std::vector<uint32_t>{10, 10, 10, 0, 109, 109, 10}));
}

TEST(PythonLines, DecodesEntriesOfAllKinds) {
  const std::string table = Table({
      0x80 | 0 << 3 | 1, 0x12,                   // short form: two units, the same line
      0x80 | 11 << 3 | 0, 1, 2,                  // one line on
      0x80 | 15 << 3 | 0,                        // no line
      0x80 | 13 << 3 | 0, 3,                     // one line back
      0x80 | 14 << 3 | 0, 0x40 | 8, 2, 0, 0, 0,  // 68 lines on (136 = 8 + 2 * 64), with an end line and columns
      0x80 | 12 << 3 | 7, 0, 0,                  // two lines on, eight units
  });
  PythonLines lines(Lines::kEntries, table, 10, false);
  EXPECT_EQ(LinesAt(lines, {-2, 0, 2, 4, 6, 8, 10, 12, 26, 28}),
            (std::vector<uint32_t>{10, 10, 10, 11, 0, 10, 78, 80, 80, 10}));
}

TEST(PythonLines, HasNoLineBehindACutTable) {
  PythonLines entries(Lines::kEntries, Table({0x80 | 0 << 3 | 1, 0x12}), 10, true);
  EXPECT_EQ(LinesAt(entries, {0, 2, 4}), (std::vector<uint32_t>{10, 10, 0}));
  PythonLines deltas(Lines::kDeltas, Table({2, 1}), 10, true);
  EXPECT_EQ(LinesAt(deltas, {0, 2}), (std::vector<uint32_t>{10, 0}));
}

TEST(PythonLines, AcceptsAnyBytes) {
  for (Lines format : {Lines::kDeltas, Lines::kRanges, Lines::kEntries}) {
    for (int byte = 0; byte < 256; ++byte) {
      PythonLines lines(format, std::string(1000, static_cast<char>(byte)), INT32_MAX, false);
      EXPECT_LE(lines.LineAt(500), static_cast<uint32_t>(INT32_MAX));
      EXPECT_LE(lines.bytes(), 16'384u);
    }
    EXPECT_EQ(PythonLines(format, "", 7, false).LineAt(0), 7u);
  }
}

TEST(PythonLines, ComparesByContent) {
  EXPECT_EQ(PythonLines(Lines::kRanges, Table({4, 1}), 1, false), PythonLines(Lines::kRanges, Table({4, 1}), 1, false));
  EXPECT_FALSE(PythonLines(Lines::kRanges, Table({4, 1}), 1, false) ==
               PythonLines(Lines::kRanges, Table({4, 2}), 1, false));
}

}  // namespace
}  // namespace tributary
