#include "kernel-collector/runtimes/jit/jit_dump.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kernel-collector/runtimes/jit/jit_dump_testing.h"

namespace tributary {
namespace {

class Records : public JitDumpVisitor {
 public:
  void OnCode(const NewCode& code) override {
    std::string text = fmt::format("{:x}-{:x}@{} {}", code.start, code.end, code.since.value, code.name);
    if (!code.file.empty()) text += fmt::format(" ({}:{})", code.file, code.line);
    for (const auto& line : code.lines) text += fmt::format(" {:x}={}:{}", line.address, line.file, line.line);
    seen.push_back(std::move(text));
  }
  void OnMove(const Move& move) override {
    seen.push_back(fmt::format("move {:x}>{:x}+{:x}@{}", move.from, move.to, move.size, move.time.value));
  }
  std::vector<std::string> seen;
};

TEST(JitDump, ParsesRecordsInPartsOfAnySize) {
  JitDumpText dump;
  dump.Load(5, 0x1000, 0x20, "f").Other(4, 100).Other(77, 3);
  dump.Lines(0x2000, {{0x2000, 3, "/a.x"}, {0x2008, 4, "\xff"}, {0x2010, 9, "/b.x"}}).Load(6, 0x2000, 0x100, "g");
  dump.Move(7, 0x1000, 0x3000, 0x20).Other(3, 0).Load(8, 0x4000, 0x10, "JS:*h /h.js:2:1");
  const std::vector<std::string> expected = {"1000-1020@5 f", "2000-2100@6 g 2000=/a.x:3 2008=/a.x:4 2010=/b.x:9",
                                             "move 1000>3000+20@7", "4000-4010@8 h (/h.js:2)"};
  for (size_t step : {size_t{1}, size_t{13}, dump.bytes.size()}) {
    JitDumpParser parser;
    Records records;
    for (size_t at = 0; at < dump.bytes.size(); at += step) {
      ASSERT_TRUE(parser.Add(std::string_view(dump.bytes).substr(at, step), records).ok());
    }
    EXPECT_EQ(records.seen, expected) << step;
    EXPECT_TRUE(parser.closed());
    EXPECT_EQ(parser.malformed(), 0u);
  }
}

TEST(JitDump, MachineCodeNeedNotBeRead) {
  JitDumpText dump;
  dump.Load(5, 0x1000, 1u << 20, "f").Load(6, 0x2000, 0x20, "g");
  JitDumpParser parser;
  Records records;
  size_t read = 0;
  for (uint64_t at = 0; at < dump.bytes.size();) {
    const auto part = std::string_view(dump.bytes).substr(at, 1024);
    ASSERT_TRUE(parser.Add(part, records).ok());
    read += part.size();
    at += part.size() + parser.TakeSkip();
  }
  EXPECT_EQ(records.seen.size(), 2u);
  EXPECT_LT(read, 8192u);
}

TEST(JitDump, RefusesOtherFormats) {
  const struct {
    JitDumpText::Header header;
    absl::StatusCode code;
  } cases[] = {
      {{.magic = 0x4454694A}, absl::StatusCode::kUnimplemented},  // big-endian
      {{.magic = 1}, absl::StatusCode::kInvalidArgument},
      {{.version = 2}, absl::StatusCode::kUnimplemented},
      {{.size = 8}, absl::StatusCode::kInvalidArgument},
      {{.flags = 1}, absl::StatusCode::kUnimplemented},  // the processor's clock
  };
  for (const auto& c : cases) {
    JitDumpText dump(c.header);
    dump.Load(5, 0x1000, 0x20, "f");
    JitDumpParser parser;
    Records records;
    EXPECT_EQ(parser.Add(dump.bytes, records).code(), c.code);
    EXPECT_EQ(parser.Add(dump.bytes, records).code(), c.code);
    EXPECT_TRUE(records.seen.empty());
  }
}

TEST(JitDump, CountsMalformedRecords) {
  JitDumpText dump;
  dump.Load(1, 0x1000, 0, "no size").Load(2, UINT64_MAX - 4, 16, "overflow").Load(3, 0x1000, 8, "");
  dump.Other(0, 4).Other(1, 4).Other(2, 4).Move(4, UINT64_MAX, 1, 8).Load(5, 0x2000, 8, "good");
  JitDumpParser parser;
  Records records;
  ASSERT_TRUE(parser.Add(dump.bytes, records).ok());
  EXPECT_EQ(records.seen, std::vector<std::string>{"2000-2008@5 good"});
  EXPECT_EQ(parser.malformed(), 7u);
  dump.Record(0, 15, 6);
  EXPECT_EQ(parser.Add(std::string_view(dump.bytes).substr(dump.bytes.size() - 16), records).code(),
            absl::StatusCode::kInvalidArgument);
}

TEST(JitDump, UndoesTheShiftOfV8Lines) {
  JitDumpText dump;
  dump.Lines(0x1000, {{0x1040, 3, "/a.js"}, {0x1050, 4, "\xff"}}).Load(1, 0x1000, 0x80, "JS:*f /a.js:3:1");
  dump.Lines(0x2000, {{0x2040, 3, "/a.x"}}).Load(1, 0x2000, 0x80, "g");
  JitDumpParser parser;
  Records records;
  ASSERT_TRUE(parser.Add(dump.bytes, records).ok());
  EXPECT_EQ(records.seen, (std::vector<std::string>{"1000-1080@1 f (/a.js:3) 1000=/a.js:3 1010=/a.js:4",
                                                    "2000-2080@1 g 2040=/a.x:3"}));
}

TEST(JitDump, LinesWithFalseCountsAreBounded) {
  JitDumpText dump;
  dump.Record(2, 32 + 20, 1);
  dump.Put(uint64_t{0x1000}), dump.Put(UINT64_MAX);
  dump.Put(uint64_t{0x1000}), dump.Put(uint32_t{8}), dump.Put(uint32_t{0});
  dump.bytes.append("abcd");  // no end of the text
  dump.Load(1, 0x1000, 8, "f");
  JitDumpParser parser;
  Records records;
  ASSERT_TRUE(parser.Add(dump.bytes, records).ok());
  EXPECT_EQ(records.seen, std::vector<std::string>{"1000-1008@1 f"});
}

}  // namespace
}  // namespace tributary
