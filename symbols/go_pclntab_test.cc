#include "symbols/go_pclntab.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "symbols/elf_symbols.h"
#include "symbols/go_image_testing.h"
#include "symbols/go_table_bytes.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::GoImage;
using ::testing::IsEmpty;

constexpr GoTableForm kForms[] = {GoTableForm::kGo2, GoTableForm::kGo16, GoTableForm::kGo18, GoTableForm::kGo20};

struct Symbols {
  absl::StatusOr<GoPclntab::Counts> counts = GoPclntab::Counts();
  std::shared_ptr<const SymbolTable> table;
  uint64_t text = 0;

  // Returns "function file:line" from the innermost frame to the function.
  std::vector<std::string> At(uint64_t offset) const {
    std::vector<std::string> frames;
    const uint32_t row = table->FindRow(text + offset);
    if (row == SymbolTable::kNoRow) return frames;
    table->ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
      const std::string place = frame.line == 0 ? "" : " " + std::string(frame.file) + ":" + std::to_string(frame.line);
      if (frame.node != 0) frames.push_back(std::string(frame.name) + place);
      return true;
    });
    return frames;
  }
};

Symbols Read(std::string_view bytes, uint64_t text = 0) {
  Symbols out{.text = text};
  SymbolTableBuilder builder;
  auto file = ElfFile::FromMemory(bytes);
  out.counts = file.ok() ? AddGoSymbols(**file, builder) : absl::StatusOr<GoPclntab::Counts>(file.status());
  out.table =
      builder.Build(*ExecutableId::Make(ExecutableIdKind::kGnuBuildId, std::string_view("id")), SymbolSource::kPclntab);
  return out;
}

Symbols Read(const GoImage::File& file) { return Read(file.bytes, file.text); }
Symbols Read(const GoImage& image) { return Read(image.Write()); }

void ExpectFunctionsAndLines(const Symbols& symbols) {
  ASSERT_TRUE(symbols.counts.ok()) << symbols.counts.status();
  EXPECT_EQ(symbols.counts->functions, 3u);
  EXPECT_EQ(symbols.counts->malformed, 0u);
  EXPECT_EQ(symbols.counts->left_out, 0u);
  EXPECT_THAT(symbols.At(0), ElementsAre("main.main /src/main.go:10"));
  EXPECT_THAT(symbols.At(11), ElementsAre("main.main /src/main.go:10"));
  EXPECT_THAT(symbols.At(12), ElementsAre("main.main /src/main.go:12"));
  EXPECT_THAT(symbols.At(55), ElementsAre("main.main /src/main.go:13"));
  EXPECT_THAT(symbols.At(56), IsEmpty());  // padding
  EXPECT_THAT(symbols.At(63), IsEmpty());
  EXPECT_THAT(symbols.At(64), ElementsAre("runtime.goexit1"));
  EXPECT_THAT(symbols.At(127), ElementsAre("runtime.goexit"));
  EXPECT_THAT(symbols.At(128), IsEmpty());
}

void ExpectAll(const Symbols& symbols) {
  ExpectFunctionsAndLines(symbols);
  ASSERT_TRUE(symbols.counts.ok());
  EXPECT_TRUE(symbols.counts->trees_known);
  EXPECT_EQ(symbols.counts->inlined, 2u);
  EXPECT_THAT(symbols.At(16), ElementsAre("main.outer /src/other.go:4", "main.main /src/main.go:12"));
  EXPECT_THAT(symbols.At(20), ElementsAre("main.outer /src/other.go:5", "main.main /src/main.go:12"));
  EXPECT_THAT(symbols.At(24),
              ElementsAre("main.inner /src/other.go:2", "main.outer /src/other.go:5", "main.main /src/main.go:12"));
  EXPECT_THAT(symbols.At(32), ElementsAre("main.outer /src/other.go:6", "main.main /src/main.go:12"));
  EXPECT_THAT(symbols.At(48), ElementsAre("main.main /src/main.go:13"));
}

TEST(GoPclntab, ReadsEveryForm) {
  for (GoTableForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    ExpectAll(Read({.form = form}));
    ExpectAll(Read({.form = form, .machine = kElfMachineArm64}));
  }
}

TEST(GoPclntab, FollowsPointersWrittenByALoader) {
  for (GoTableForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    ExpectAll(Read({.form = form, .loaded_later = true, .section = ".data.rel.ro"}));
    ExpectAll(Read({.form = form, .loaded_later = true, .machine = kElfMachineArm64}));
  }
}

TEST(GoPclntab, NeedsNoSectionHeaders) {
  for (GoTableForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    for (bool later : {false, true}) {
      GoImage::File file = GoImage{.form = form, .loaded_later = later}.Write();
      std::memset(file.bytes.data() + offsetof(ElfHeader, section_header_offset), 0, sizeof(uint64_t));
      std::memset(file.bytes.data() + offsetof(ElfHeader, section_header_count), 0, sizeof(uint16_t));
      ExpectAll(Read(file));
    }
  }
}

TEST(GoPclntab, FindsTextBySymbolsOrCodeWithoutAModule) {
  for (GoTableForm form : {GoTableForm::kGo18, GoTableForm::kGo20}) {
    SCOPED_TRACE(static_cast<int>(form));
    ExpectAll(Read({.form = form, .module = false, .symbols = true}));
    const Symbols symbols = Read({.form = form, .module = false});
    ExpectFunctionsAndLines(symbols);
    ASSERT_TRUE(symbols.counts.ok());
    EXPECT_FALSE(symbols.counts->trees_known);
    EXPECT_THAT(symbols.At(24), ElementsAre("main.main /src/other.go:2"));
    // Also without goexit's code.
    GoImage::File file = GoImage{.form = form, .module = false}.Write();
    file.bytes[file.offset_of(file.text) + 96] = '\xcc';
    EXPECT_TRUE(absl::IsNotFound(Read(file).counts.status()));
  }
}

TEST(GoPclntab, IsReadWithTheElfSymbols) {
  const GoImage::File image = GoImage{}.Write();
  auto file = ElfFile::FromMemory(image.bytes);
  ASSERT_TRUE(file.ok());
  const auto table = ReadElfSymbols(**file, *(*file)->Identity());
  ASSERT_TRUE(table.ok()) << table.status();
  EXPECT_EQ((*table)->source(), SymbolSource::kPclntab);
  ExpectAll({.counts = Read(image).counts, .table = *table, .text = image.text});
}

TEST(GoPclntab, OtherFilesHaveNone) {
  testing::ElfImage image;
  image.AddSection(".text", 1, std::string(64, '\x90'), kElfSectionExecutable);
  EXPECT_TRUE(absl::IsNotFound(Read(image.Write()).counts.status()));
}

TEST(GoPclntab, SelfInlinedCallsCountAsInlinedIntoTheFunction) {
  for (GoTableForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    const Symbols each_in_the_other = Read({.form = form, .records = {{0, 26}, {1, 20}}});
    ASSERT_TRUE(each_in_the_other.counts.ok());
    EXPECT_EQ(each_in_the_other.counts->malformed, 1u);
    EXPECT_THAT(each_in_the_other.At(24), ElementsAre("main.inner /src/other.go:2", "main.main /src/other.go:5"));
    EXPECT_THAT(each_in_the_other.At(48), ElementsAre("main.main /src/main.go:13"));
    const Symbols in_itself = Read({.form = form, .records = {{0, 12}, {1, 24}}});
    ASSERT_TRUE(in_itself.counts.ok());
    EXPECT_EQ(in_itself.counts->malformed, 1u);
    EXPECT_THAT(in_itself.At(24), ElementsAre("main.inner /src/other.go:2", "main.main /src/other.go:2"));
  }
}

// Nested calls, with one byte of code each.
TEST(GoPclntab, ReadsDeeplyNestedCalls) {
  for (uint32_t depth : {8u, 40u}) {
    GoImage image{.records = {}, .calls = {}};
    for (uint32_t i = 0; i < depth; ++i) {
      image.records.emplace_back(1, i);
      image.calls.emplace_back(i + 1, static_cast<int32_t>(i) - 1);
    }
    image.calls.emplace_back(56, static_cast<int32_t>(depth) - 1);
    const Symbols symbols = Read(image);
    ASSERT_TRUE(symbols.counts.ok());
    EXPECT_EQ(symbols.counts->malformed, 0u);
    EXPECT_EQ(symbols.counts->inlined, depth);
    EXPECT_EQ(symbols.At(50).size(), depth + 1);
  }
}

TEST(GoPclntab, UnreadableDataLeavesTheRest) {
  for (GoTableForm form : kForms) {
    SCOPED_TRACE(static_cast<int>(form));
    // Records that do not exist, and a call from after the function's end.
    for (const GoImage& image : {GoImage{.form = form, .calls = {{16, -1}, {24, 1 << 20}, {56, -1}}},
                                 GoImage{.form = form, .calls = {{16, -1}, {24, 1 << 19}, {56, -1}}},
                                 GoImage{.form = form, .records = {{0, 56}, {1, 20}}, .calls = {{16, -1}, {56, 0}}}}) {
      const Symbols symbols = Read(image);
      ASSERT_TRUE(symbols.counts.ok());
      EXPECT_EQ(symbols.counts->malformed, 1u);
      EXPECT_THAT(symbols.At(16), ElementsAre("main.main /src/other.go:4"));
    }
    // Steps that end within a number.
    GoImage::File file = GoImage{.form = form}.Write();
    const size_t lines =
        file.bytes.find(std::string("\x16\x0c\x04\x04", 4));  // of main.main: 10 up to 12, 2 more up to 16
    ASSERT_NE(lines, std::string::npos);
    std::memset(file.bytes.data() + lines + 2, 0xff, 6);
    const Symbols symbols = Read(file);
    ASSERT_TRUE(symbols.counts.ok());
    EXPECT_EQ(symbols.counts->malformed, 1u);
    EXPECT_THAT(symbols.At(0), ElementsAre("main.main /src/main.go:10"));
    EXPECT_THAT(symbols.At(64), ElementsAre("runtime.goexit1"));
  }
}

TEST(GoPclntab, EndsWhereAddressesDescend) {
  const GoImage::File good = GoImage{}.Write();
  uint64_t functions = 0;
  std::memcpy(&functions, good.bytes.data() + good.offset_of(good.table) + 64, sizeof(functions));
  GoImage::File file = good;
  const uint32_t back = 16;
  std::memcpy(file.bytes.data() + file.offset_of(file.table) + functions + 16, &back, sizeof(back));
  const Symbols symbols = Read(file);
  ASSERT_TRUE(symbols.counts.ok());
  EXPECT_EQ(symbols.counts->functions, 1u);
}

TEST(GoTableBytes, LimitsAllStepsTogether) {
  GoTableHeader header;
  header.end = 9;
  SymbolTableBuilder builder;
  GoTableBytes table(header, std::string("\0\x02\x01\x02\x01\x02\x01\x02\x01", 9), builder, 5);
  std::vector<GoStep> steps;
  EXPECT_TRUE(table.ReadSteps(1, 3, &steps));
  EXPECT_EQ(steps.size(), 3u);
  EXPECT_EQ(GoValueAt(steps, 0), 0);
  EXPECT_EQ(GoValueAt(steps, 2), 2);
  EXPECT_EQ(GoValueAt(steps, 3), -1);
  EXPECT_FALSE(table.ReadSteps(1, 3, &steps));
  EXPECT_EQ(steps.size(), 2u);
  EXPECT_TRUE(table.steps_used_up());
}

TEST(GoTableBytes, LimitsNamesWithSharedBytes) {
  // Each offset into one long name is a name with the same end.
  constexpr size_t kBytes = 64u << 10;
  GoTableHeader header;
  header.end = header.names_end = kBytes;
  SymbolTableBuilder builder;
  GoTableBytes table(header, std::string(kBytes, 'x'), builder, 1);
  size_t named = 0;
  for (uint32_t at = 0; at < 1000; ++at) named += table.FunctionName(at) != 0 ? 1 : 0;
  EXPECT_GT(named, 0u);
  EXPECT_LE(named, 3 * kBytes / SymbolTable::kNameBytesMax);
}

TEST(GoPclntab, SurvivesInconsistentFiles) {
  std::mt19937 random(7);
  size_t read = 0, inlined = 0;
  for (GoTableForm form : kForms) {
    for (bool later : {false, true}) {
      const GoImage::File good = GoImage{.form = form, .loaded_later = later, .symbols = true}.Write();
      for (int round = 0; round < 3000; ++round) {
        std::string bytes = good.bytes;
        for (int flips = 1 + round % 3; flips > 0; --flips)
          bytes[random() % bytes.size()] = static_cast<char>(random());
        const Symbols symbols = Read(bytes);
        if (!symbols.counts.ok()) continue;
        ++read;
        inlined += symbols.counts->inlined;
        EXPECT_LE(symbols.counts->functions, 3u);
      }
      for (size_t size = 0; size < good.bytes.size(); size += 3) Read(std::string_view(good.bytes).substr(0, size));
    }
  }
  EXPECT_GT(read, 5000u);
  EXPECT_GT(inlined, 5000u);
}

}  // namespace
}  // namespace tributary
