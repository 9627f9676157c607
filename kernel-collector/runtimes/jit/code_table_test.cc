#include "kernel-collector/runtimes/jit/code_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>

namespace tributary {
namespace {

std::string NameAt(const CodeTable& table, uint64_t address, int64_t time) {
  CodeName name;
  return table.Find(address, MonotonicNs{time}, &name) ? std::string(name.name) : "-";
}

struct Line {
  uint64_t start, end;
  std::string name;
};

// A run of lines without times, as from a perf map.
CodeRunPtr MapRun(const std::vector<Line>& lines, int64_t previous, int64_t read_at) {
  CodeRunBuilder builder;
  for (const Line& line : lines) builder.Add({.start = line.start, .end = line.end, .name = line.name});
  return builder.Build(
      {.read_at = MonotonicNs{read_at}, .maybe_from = MonotonicNs{previous}, .lines_are_from = MonotonicNs{read_at}});
}

TEST(CodeTable, TheLastLineOfAnAddressNamesIt) {
  CodeTable table;
  table.Add(MapRun({{0x1000, 0x1100, "a"}, {0x1040, 0x1060, "b"}, {0x1050, 0x1200, "c"}}, 0, 10), MonotonicNs{10});
  EXPECT_EQ(NameAt(table, 0xfff, 20), "-");
  EXPECT_EQ(NameAt(table, 0x1000, 20), "a");
  EXPECT_EQ(NameAt(table, 0x103f, 20), "a");
  EXPECT_EQ(NameAt(table, 0x1040, 20), "b");
  EXPECT_EQ(NameAt(table, 0x1050, 20), "c");
  EXPECT_EQ(NameAt(table, 0x11ff, 20), "c");
  EXPECT_EQ(NameAt(table, 0x1200, 20), "-");
}

TEST(CodeTable, LinesOfTheFirstReadingNameEarlierSamples) {
  CodeTable table;
  table.Add(MapRun({{0x1000, 0x1100, "a"}}, 0, 10), MonotonicNs{10});
  EXPECT_EQ(NameAt(table, 0x1000, 1), "a");
}

TEST(CodeTable, ALineThatReplacesCodeCountsFromItsReading) {
  CodeTable table;
  table.Add(MapRun({{0x1000, 0x1100, "old"}}, 0, 10), MonotonicNs{10});
  table.Add(MapRun({{0x1000, 0x1080, "new"}}, 9, 20), MonotonicNs{20});
  EXPECT_EQ(NameAt(table, 0x1000, 19), "old");
  EXPECT_EQ(NameAt(table, 0x1000, 20), "new");
  EXPECT_EQ(NameAt(table, 0x1090, 30), "old");
}

TEST(CodeTable, ALineForNewCodeCountsFromTheReadingThatDidNotSeeIt) {
  CodeTable table;
  table.Add(MapRun({{0x1000, 0x1100, "a"}}, 0, 10), MonotonicNs{10});
  table.Add(MapRun({{0x2000, 0x2100, "b"}}, 9, 20), MonotonicNs{20});
  EXPECT_EQ(NameAt(table, 0x2000, 8), "-");
  EXPECT_EQ(NameAt(table, 0x2000, 9), "b");
  EXPECT_EQ(NameAt(table, 0x2000, 25), "b");
}

TEST(CodeTable, CodeWithTimesCountsFromThem) {
  CodeRunBuilder builder;
  builder.Add({.start = 0x1000, .end = 0x1100, .since = MonotonicNs{100}, .name = "first"});
  builder.Add({.start = 0x1000, .end = 0x1100, .since = MonotonicNs{200}, .name = "second"});
  builder.AddGone(0x1000, 0x1100, MonotonicNs{300});
  CodeTable table;
  table.Add(builder.Build({.read_at = MonotonicNs{400}, .by_time = true}), MonotonicNs{400});
  EXPECT_EQ(NameAt(table, 0x1000, 99), "-");
  EXPECT_EQ(NameAt(table, 0x1000, 100), "first");
  EXPECT_EQ(NameAt(table, 0x1000, 199), "first");
  EXPECT_EQ(NameAt(table, 0x1000, 250), "second");
  EXPECT_EQ(NameAt(table, 0x1000, 300), "-");
}

TEST(CodeTable, LinesAndFilesBelongToAddresses) {
  const std::vector<NewCode::Line> lines = {{0x1010, 7, "/b.x"}, {0x1000, 5, "/a.x"}, {0x2000, 9, "/outside"}};
  CodeRunBuilder builder;
  builder.Add({.start = 0x1000, .end = 0x1100, .since = MonotonicNs{1}, .name = "f", .lines = lines});
  const CodeRunPtr run = builder.Build({.read_at = MonotonicNs{4}, .by_time = true});
  CodeName name;
  ASSERT_EQ(run->Find(0x100f, MonotonicNs{5}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.line, 5u);
  EXPECT_EQ(name.file, "/a.x");
  ASSERT_EQ(run->Find(0x10ff, MonotonicNs{5}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.line, 7u);
  EXPECT_EQ(name.file, "/b.x");
}

TEST(CodeTable, NamesAreCutAndMadeUtf8) {
  CodeRunBuilder builder;
  builder.Add({.start = 1, .end = 2, .name = std::string(511, 'x') + "\xc3\xa4"});
  builder.Add({.start = 2, .end = 3, .name = "a\xff"});
  const CodeRunPtr run = builder.Build({});
  CodeName name;
  ASSERT_EQ(run->Find(1, MonotonicNs{5}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.name, std::string(511, 'x'));
  ASSERT_EQ(run->Find(2, MonotonicNs{5}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.name, "a\xef\xbf\xbd");
}

TEST(CodeTable, MergesOldRunsAndDropsDeadNames) {
  CodeTable table;
  const int64_t step = CodeTable::kSampleAgeNs;
  for (int64_t i = 1; i <= 1000; ++i) {
    const auto at = static_cast<uint64_t>(i % 10) * 0x1000;
    table.Add(MapRun({{at, at + 0x1000, fmt::format("f{}", i)}}, (i - 1) * step, i * step), MonotonicNs{i * step});
  }
  EXPECT_LE(table.runs().size(), 8u);
  EXPECT_LE(table.functions(), 20u);
  for (uint64_t i = 0; i < 10; ++i) {
    const uint64_t last = i == 0 ? 1000 : 990 + i;
    EXPECT_EQ(NameAt(table, i * 0x1000, 1000 * step), fmt::format("f{}", last));
  }
}

TEST(CodeTable, TimesAfterTheReadingCountAsTheReading) {
  CodeRunBuilder builder;
  builder.Add({.start = 0x1000, .end = 0x1100, .since = MonotonicNs{100}, .name = "true"});
  builder.Add({.start = 0x1000, .end = 0x1100, .since = MonotonicNs{INT64_MAX}, .name = "untrue"});
  const CodeRunPtr run = builder.Build({.read_at = MonotonicNs{400}, .by_time = true});
  CodeName name;
  ASSERT_EQ(run->Find(0x1000, MonotonicNs{399}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.name, "true");
  ASSERT_EQ(run->Find(0x1000, MonotonicNs{400}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.name, "untrue");
}

TEST(CodeTable, FewCoveredFunctionsOfAnAddressAreKept) {
  CodeRunBuilder builder;
  // All functions are at the first addresses. Each one also has an end of its own.
  for (int64_t i = 1; i <= 10'000; ++i) {
    const auto end = 0x1000 + static_cast<uint64_t>(i) * 0x10;
    builder.Add({.start = 0x1000, .end = end, .since = MonotonicNs{i}, .name = fmt::format("f{}", i)});
  }
  const CodeRunPtr run = builder.Build({.read_at = MonotonicNs{20'000}, .by_time = true});
  constexpr int64_t kDepth = CodeRunBuilder::kPastDepthMax;
  CodeName name;
  for (int64_t time = 10'000; time >= 10'000 - kDepth; --time) {
    ASSERT_EQ(run->Find(0x1000, MonotonicNs{time}, &name), CodeRun::Found::kName) << time;
    EXPECT_EQ(name.name, fmt::format("f{}", time));
  }
  EXPECT_EQ(run->Find(0x1000, MonotonicNs{10'000 - kDepth - 1}, &name), CodeRun::Found::kLaterName);
}

// Compares with the definition: the last function that existed at the time.
TEST(CodeTable, CoveredFunctionsAgreeWithASimpleModel) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<Line> lines;  // the time is the number
    CodeRunBuilder builder;
    for (int64_t i = 1; i <= 12; ++i) {
      const uint64_t start = random() % 32, end = start + 1 + random() % (32 - start);
      lines.push_back({start, end, fmt::format("f{}", i)});
      builder.Add({.start = start, .end = end, .since = MonotonicNs{i}, .name = lines.back().name});
    }
    const CodeRunPtr run = builder.Build({.read_at = MonotonicNs{20}, .by_time = true});
    for (uint64_t at = 0; at < 32; ++at) {
      for (int64_t time = 1; time <= 12; ++time) {
        std::string expected;
        for (int64_t i = 1; i <= time; ++i) {
          const Line& line = lines[static_cast<size_t>(i - 1)];
          if (line.start <= at && at < line.end) expected = line.name;
        }
        CodeName name;
        const bool found = run->Find(at, MonotonicNs{time}, &name) == CodeRun::Found::kName;
        EXPECT_EQ(found ? name.name : "", expected) << at << " " << time;
      }
    }
  }
}

TEST(CodeTable, LongFileNamesAreCutBeforeTheyAreCompared) {
  // These names differ only after the limit. Each row refers to a text of its own, as a jitdump can do it.
  const std::string long_name(CodeRunBuilder::kFileBytesMax, 'x');
  std::vector<std::string> files;
  for (int i = 0; i < 100; ++i) files.push_back(fmt::format("{}{}", long_name, i));
  std::vector<NewCode::Line> lines;
  for (uint64_t i = 0; i < files.size(); ++i) lines.push_back({0x1000 + i, 7, files[i]});
  CodeRunBuilder builder;
  builder.Add({.start = 0x1000, .end = 0x1100, .name = "f", .lines = lines});
  const CodeRunPtr run = builder.Build({});
  EXPECT_LT(run->bytes(), 2 * CodeRunBuilder::kFileBytesMax);
  CodeName name;
  ASSERT_EQ(run->Find(0x1050, MonotonicNs{1}, &name), CodeRun::Found::kName);
  EXPECT_EQ(name.file, long_name);
}

TEST(CodeTable, RowsWithTheSameTextHaveTheSameFile) {
  const std::string huge(512 << 10, 'x'), other = "/other";
  std::vector<NewCode::Line> lines;
  for (uint64_t i = 0; i < 20'000; ++i) lines.push_back({0x1000 + i, 7, i == 10'000 ? other : huge});
  CodeRunBuilder builder;
  builder.Add({.start = 0x1000, .end = 0x10000, .name = "f", .lines = lines});
  // The texts of the next function may be at the same place in memory.
  std::string reused = "/first";
  const NewCode::Line first{0x20000, 1, reused};
  builder.Add({.start = 0x20000, .end = 0x20001, .name = "g", .lines = {&first, 1}});
  reused = "/later";
  const NewCode::Line later{0x30000, 1, reused};
  builder.Add({.start = 0x30000, .end = 0x30001, .name = "h", .lines = {&later, 1}});
  const CodeRunPtr run = builder.Build({});
  const auto file_at = [&](uint64_t address) {
    CodeName name;
    EXPECT_EQ(run->Find(address, MonotonicNs{1}, &name), CodeRun::Found::kName);
    return std::string(name.file);
  };
  EXPECT_EQ(file_at(0x1000), huge.substr(0, CodeRunBuilder::kFileBytesMax));
  EXPECT_EQ(file_at(0x1000 + 10'000), other);
  EXPECT_EQ(file_at(0x1000 + 10'001), file_at(0x1000));
  EXPECT_EQ(file_at(0x20000), "/first");
  EXPECT_EQ(file_at(0x30000), "/later");
}

TEST(CodeTable, AMergeCopiesAFunctionOfManyPiecesOnce) {
  const int64_t step = 2 * CodeTable::kSampleAgeNs;
  const std::string name(CodeRunBuilder::kNameBytesMax, 'n');
  std::vector<NewCode::Line> rows;
  for (uint64_t i = 0; i < 1000; ++i) rows.push_back({0x1000 + 2 * i, static_cast<uint32_t>(i + 1), "/a.x"});
  const auto run = [&](int64_t read_at) {
    CodeRunBuilder builder;
    builder.Add({.start = 0x1000, .end = 0x2000, .name = name, .lines = rows});
    for (uint64_t i = 0; i < 500; ++i) builder.Add({.start = 0x1000 + 4 * i, .end = 0x1001 + 4 * i, .name = "s"});
    return builder.Build({.read_at = MonotonicNs{read_at}, .lines_are_from = MonotonicNs{read_at}});
  };
  CodeTable table;
  table.Add(run(step), MonotonicNs{step});
  const size_t bytes = table.bytes();
  for (int64_t i = 2; i <= 4; ++i) {
    table.Add(run(i * step), MonotonicNs{i * step});
    EXPECT_LE(table.bytes(), static_cast<size_t>(i) * bytes);
  }
  EXPECT_LE(table.runs().size(), 2u);
  CodeName found;
  ASSERT_TRUE(table.Find(0x1000 + 4 * 100 + 3, MonotonicNs{5 * step}, &found));
  EXPECT_EQ(found.name, name);
  EXPECT_EQ(found.line, 202u);
  EXPECT_EQ(found.file, "/a.x");
  EXPECT_EQ(NameAt(table, 0x1000 + 4 * 100, 5 * step), "s");
}

// Compares with the definition: the last line of an address names it.
TEST(CodeTable, OverlappingLinesAgreeWithASimpleModel) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> model(64, "-");
    CodeTable table;
    const int64_t step = 2 * CodeTable::kSampleAgeNs;
    for (int64_t run = 1; run <= 4; ++run) {
      std::vector<Line> lines;
      for (uint32_t i = 0; i < 1 + random() % 8; ++i) {
        const uint64_t start = random() % 64, end = start + 1 + random() % (64 - start);
        lines.push_back({start, end, fmt::format("r{}l{}", run, i)});
        for (uint64_t at = start; at < end; ++at) model[at] = lines.back().name;
      }
      table.Add(MapRun(lines, (run - 1) * step, run * step), MonotonicNs{run * step});
    }
    for (uint64_t at = 0; at < 64; ++at) EXPECT_EQ(NameAt(table, at, 9 * step), model[at]) << at;
  }
}

}  // namespace
}  // namespace tributary
