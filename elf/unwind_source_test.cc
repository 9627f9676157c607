#include "elf/unwind_source.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <random>
#include <set>

#include "base/zstd.h"
#include "elf/row_builder.h"
#include "elf/unwind_rows_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::ElfImage;
using testing::FileWithTable;
using testing::Frames;
using testing::ImageWith;
using ::testing::IsEmpty;
using testing::kCode;
using testing::Lines;
using testing::OpenSource;

const std::string kGrow("\x44\x0e\x10", 3);  // from byte 4 on CFA = rsp+16

std::unique_ptr<UnwindSource> OpenPath(const std::string& path) {
  auto file = ElfFile::Open(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)));
  EXPECT_TRUE(file.ok()) << path << ": " << file.status();
  if (!file.ok()) return nullptr;
  auto source = UnwindSource::Open(*std::move(file));
  EXPECT_TRUE(source.ok()) << path << ": " << source.status();
  return source.ok() ? *std::move(source) : nullptr;
}

// Checks the properties that rows have for any file.
void ExpectWellFormed(const std::vector<UnwindRow>& rows, AddressRange range) {
  ASSERT_FALSE(rows.empty());
  EXPECT_EQ(rows[0].offset, 0u);
  for (size_t i = 1; i < rows.size(); ++i) {
    ASSERT_LT(rows[i - 1].offset, rows[i].offset);
    ASSERT_NE(rows[i - 1].rule, rows[i].rule);
  }
  EXPECT_LT(rows.back().offset, range.end - range.begin);
  EXPECT_LE(rows.size(), RowBuilder::AddsMax(range));
}

// Does everything that a collector does with a file that may be hostile.
void CompileAll(std::string_view bytes) {
  auto file = ElfFile::FromMemory(bytes);
  if (!file.ok()) return;
  auto source = UnwindSource::Open(*std::move(file));
  if (!source.ok()) return;
  AddressRange text = (*source)->text();
  uint64_t step = std::clamp<uint64_t>((text.end - text.begin) / 4, 4096, UnwindSource::kRangeBytesMax);
  std::vector<UnwindRow> rows;
  for (int i = 0; i < 4 && text.begin < text.end; ++i) {
    AddressRange range{text.begin, text.begin + std::min(step, text.end - text.begin)};
    if ((*source)->Compile(range, &rows).ok()) ExpectWellFormed(rows, range);
    text.begin = range.end;
  }
}

TEST(UnwindSource, NoUnwindInformationIsNoError) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64 << 10, '\x90'), 6);
  std::string file = image.Write();
  auto source = OpenSource(file);
  EXPECT_EQ(source->kind(), UnwindSource::Kind::kNone);
  EXPECT_THAT(Lines(*source), ElementsAre("+0 none"));
}

TEST(UnwindSource, PaddingGoesToTheFunctionBefore) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode + 0x10, 0x11, kGrow});
  frames.AddFunction({common, kCode + 0x30, 0x10, ""});  // 15 bytes later
  frames.AddFunction({common, kCode + 0x50, 0x10, ""});  // 16 bytes later
  std::string file = ImageWith(".eh_frame", frames.bytes()).Write();
  auto source = OpenSource(file);
  EXPECT_EQ(source->kind(), UnwindSource::Kind::kEhFrame);
  EXPECT_THAT(Lines(*source),
              ElementsAre("+0 none", "+10 sp+8 fp=same second=same", "+14 sp+16 fp=same second=same",
                          "+30 sp+8 fp=same second=same", "+40 none", "+50 sp+8 fp=same second=same", "+60 none"));
  // The same rows from the middle of a function, of padding, and of a gap.
  EXPECT_THAT(Lines(*source, {kCode + 0x18, kCode + 0x28}), ElementsAre("+18 sp+16 fp=same second=same"));
  EXPECT_THAT(Lines(*source, {kCode + 0x28, kCode + 0x34}),
              ElementsAre("+28 sp+16 fp=same second=same", "+30 sp+8 fp=same second=same"));
  EXPECT_THAT(Lines(*source, {kCode + 0x48, kCode + 0x50}), ElementsAre("+48 none"));
  EXPECT_EQ(source->counts().bad_entries, 0u);
}

TEST(UnwindSource, SearchTableAndScanAgree) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  for (int i = 9; i >= 0; --i) {  // entries stand in the opposite order
    frames.AddFunction({common, kCode + static_cast<uint64_t>(i) * 0x40, 0x30, kGrow});
  }
  std::string scanned = ImageWith(".eh_frame", frames.bytes()).Write();
  auto index = frames.index();
  std::sort(index.begin(), index.end());
  std::string searched = FileWithTable(frames, index, static_cast<uint32_t>(index.size()));
  std::vector<std::string> lines = Lines(*OpenSource(scanned));
  EXPECT_EQ(lines.size(), 30u);
  EXPECT_EQ(Lines(*OpenSource(searched)), lines);
}

TEST(UnwindSource, OverlapsZeroLengthsAndDoublesKeepRowsInOrder) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode, 0x100, kGrow});
  frames.AddFunction({common, kCode + 0x40, 0x20, ""});
  frames.AddFunction({common, kCode + 0x50, 0, kGrow});
  frames.AddFunction({common, kCode + 0x80, 0x20, ""});
  frames.AddFunction({common, kCode + 0x80, 0x40, kGrow});
  std::string file = FileWithTable(frames, frames.index(), 5);
  auto source = OpenSource(file);
  AddressRange whole{kCode, kCode + 0x200};
  EXPECT_THAT(Lines(*source, whole),
              ElementsAre("+0 sp+8 fp=same second=same", "+4 sp+16 fp=same second=same", "+40 sp+8 fp=same second=same",
                          "+60 none", "+80 sp+8 fp=same second=same", "+84 sp+16 fp=same second=same", "+c0 none"));
  // The rule at an address does not depend on the begin of the range.
  EXPECT_THAT(Lines(*source, {kCode + 0x58, kCode + 0x70}), ElementsAre("+58 sp+8 fp=same second=same", "+60 none"));
  EXPECT_THAT(Lines(*source, {kCode + 0x90, kCode + 0x98}), ElementsAre("+90 sp+16 fp=same second=same"));
}

TEST(UnwindSource, ReadsBothFormatsOfBothSections) {
  for (bool eh_frame : {true, false}) {
    for (bool wide : {true, false}) {
      Frames frames(eh_frame, wide);
      uint64_t common = frames.AddCommon({.version = static_cast<uint8_t>(eh_frame ? 3 : 4)});
      frames.AddFunction({common, kCode, 0x1000, kGrow});
      if (eh_frame) frames.AddEndMark();
      std::string file = ImageWith(eh_frame ? ".eh_frame" : ".debug_frame", frames.bytes()).Write();
      auto source = OpenSource(file);
      EXPECT_EQ(source->kind(), eh_frame ? UnwindSource::Kind::kEhFrame : UnwindSource::Kind::kDebugFrame);
      EXPECT_THAT(Lines(*source), ElementsAre("+0 sp+8 fp=same second=same", "+4 sp+16 fp=same second=same"))
          << eh_frame << wide;
    }
  }
}

TEST(UnwindSource, DecompressesDebugFrame) {
  Frames frames(false);
  uint64_t common = frames.AddCommon({.version = 4});
  frames.AddFunction({common, kCode, 0x1000, kGrow});
  const std::string& raw = frames.bytes();
  uLongf size = compressBound(raw.size());
  std::string deflated(size, '\0');
  ASSERT_EQ(compress(reinterpret_cast<Bytef*>(deflated.data()), &size, reinterpret_cast<const Bytef*>(raw.data()),
                     raw.size()),
            Z_OK);
  deflated.resize(size);
  auto header = [](uint32_t type, uint64_t raw_size) {
    std::string out;
    ElfImage::Append(out, uint64_t{type});
    ElfImage::Append(out, raw_size);
    ElfImage::Append(out, uint64_t{8});
    return out;
  };
  std::string old_header =
      std::string("ZLIB\0\0\0\0\0\0", 10) + static_cast<char>(raw.size() >> 8) + static_cast<char>(raw.size());
  struct Case {
    const char* name;
    std::string bytes;
    uint64_t flags;
  } cases[] = {{".debug_frame", header(1, raw.size()) + deflated, 0x800},
               {".debug_frame", header(2, raw.size()) + ZstdCompress(raw), 0x800},
               {".zdebug_frame", old_header + deflated, 0}};
  for (const Case& c : cases) {
    std::string file = ImageWith(c.name, c.bytes, c.flags).Write();
    auto source = OpenSource(file);
    ASSERT_NE(source, nullptr);
    for (int repeat = 0; repeat < 2; ++repeat) {
      EXPECT_THAT(Lines(*source), ElementsAre("+0 sp+8 fp=same second=same", "+4 sp+16 fp=same second=same"));
    }
  }
  // Wrong sizes, an unknown codec and a cut stream are errors. A section over the decompression limit counts as
  // missing.
  auto open = [](const std::string& bytes) {
    std::string file = ImageWith(".debug_frame", bytes, 0x800).Write();
    auto elf = ElfFile::FromMemory(file);
    return UnwindSource::Open(*std::move(elf)).status().code();
  };
  EXPECT_EQ(open(header(1, 30u << 20) + deflated), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open(header(2, 30u << 20) + ZstdCompress(raw)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open(header(3, raw.size()) + deflated), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open(header(1, raw.size()) + deflated.substr(0, 20)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open("short"), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(open(header(1, uint64_t{1} << 40) + deflated), absl::StatusCode::kOk);
}

TEST(UnwindSource, BadCommonEntriesAreCountedAndNotFollowed) {
  Frames frames;
  uint64_t good = frames.AddCommon({});
  uint64_t huge = frames.AddCommon({.augmentation = "zR", .augmentation_data = std::string(100, '\0')});
  uint64_t unknown = frames.AddCommon({.augmentation = "?"});
  uint64_t version = frames.AddCommon({.version = 9});
  uint64_t other_register = frames.AddCommon({.return_address = "\x11"});
  // The CIE's own instructions advance the location.
  uint64_t moving = frames.AddCommon({.instructions = std::string("\x0c\x07\x08\x41\x0e\x10", 6)});
  uint64_t begin = kCode;
  for (uint64_t common : {unknown, version, other_register, moving, huge}) {
    frames.AddFunction({common, begin, 0x100, kGrow});
    begin += 0x100;
  }
  // A function's entry is not a CIE, not even for itself. Following such a reference would be a circle.
  uint64_t function = frames.AddFunction({good, begin, 0x100, ""});
  frames.AddFunction({function, begin + 0x100, 0x100, ""});
  frames.AddFunction({frames.bytes().size(), begin + 0x200, 0x100, ""});
  frames.AddFunction({uint64_t{0} - 4096, begin + 0x300, 0x100, ""});  // before the section
  std::string file = ImageWith(".eh_frame", frames.bytes()).Write();
  auto source = OpenSource(file);
  EXPECT_THAT(Lines(*source), ElementsAre("+0 none", "+500 sp+8 fp=same second=same", "+600 none"));
  EXPECT_EQ(source->counts().bad_entries, 8u);
}

TEST(UnwindSource, ReportsInconsistentTablesAsErrors) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode, 0x100, kGrow});
  auto status = [](const std::string& file) {
    auto elf = ElfFile::FromMemory(file);
    return UnwindSource::Open(*std::move(elf)).status().code();
  };
  EXPECT_EQ(status(FileWithTable(frames, frames.index(), UINT32_MAX)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(FileWithTable(frames, frames.index(), 2)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(status(FileWithTable(frames, frames.index(), 1)), absl::StatusCode::kOk);
  // One entry begins elsewhere than the table states. Another entry is outside the section.
  std::string file =
      FileWithTable(frames, {{kCode, 0}, {kCode + 0x200, frames.index()[0].second}, {kCode + 0x300, 1u << 30}}, 3);
  auto source = OpenSource(file);
  EXPECT_THAT(Lines(*source), ElementsAre("+0 none"));
  EXPECT_EQ(source->counts().bad_entries, 2u);  // the search for the first entry skips a bad one uncounted
}

TEST(UnwindSource, WorkIsBoundedByTheSection) {
  // One entry with a long program, and a table that lists this entry many times.
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode, 0x1000, std::string(60 << 10, '\0')});
  std::vector<std::pair<uint64_t, uint64_t>> index(20'000, frames.index()[0]);
  std::string file = FileWithTable(frames, index, static_cast<uint32_t>(index.size()));
  auto source = OpenSource(file);
  std::vector<UnwindRow> rows;
  EXPECT_EQ(source->Compile({kCode - 0x100, kCode + 0x1000}, &rows).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(rows, IsEmpty());
  EXPECT_LT(source->counts().entries, 10u);
}

TEST(UnwindSource, RefusesRangesBeyondItsLimits) {
  std::string file = ImageWith(".eh_frame", "").Write();
  auto source = OpenSource(file);
  std::vector<UnwindRow> rows;
  EXPECT_EQ(source->Compile({5, 5}, &rows).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(source->Compile({5, 4}, &rows).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(source->Compile({0, UnwindSource::kRangeBytesMax + 1}, &rows).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(source->Compile({UINT64_MAX - 10, UINT64_MAX}, &rows).ok());
}

TEST(UnwindSource, FindsThreadStarts) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode + 0x80, 0x30, ""});
  ElfImage image = ImageWith(".eh_frame", frames.bytes());
  std::string names = std::string("\0clone\0main\0thread_clone\0runtime.goexit\0", 41);
  std::string symbols;
  auto add = [&](size_t name, uint64_t address, uint64_t size) {
    ElfImage::Append(symbols, ElfSymbol{.name = static_cast<uint32_t>(name),
                                        .info = kElfSymbolFunction,
                                        .section = 1,
                                        .value = address,
                                        .size = size});
  };
  ElfImage::Append(symbols, ElfSymbol{});
  add(names.find("clone"), kCode, 0x20);
  add(names.find("main"), kCode + 0x20, 0x20);
  add(names.find("thread_clone"), kCode + 0x40, 0x20);
  add(names.find("runtime.goexit"), kCode + 0x100, 0);
  add(names.find("clone"), 0x1000, 0x20);  // outside the code
  uint16_t strings = image.AddSection(".strtab", 3, names);
  image.AddSection(".symtab", kElfSectionSymtab, symbols, 0, strings, sizeof(ElfSymbol));
  image.set_entry(kCode + 0x80);
  std::string file = image.Write();
  // Found by symbol; by entry point and the function there; by symbol without a size or a function.
  EXPECT_THAT(OpenSource(file)->starts(),
              ElementsAre(AddressRange{kCode, kCode + 0x20}, AddressRange{kCode + 0x80, kCode + 0xb0},
                          AddressRange{kCode + 0x100, kCode + 0x140}));
}

TEST(UnwindSource, RangesOfRealFilesAreCutsOfTheWhole) {
  for (const char* path : {"/bin/bash", "/bin/busybox", "/lib/x86_64-linux-gnu/libc.so.6",
                           "/lib64/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libstdc++.so.6"}) {
    auto source = OpenPath(path);
    ASSERT_NE(source, nullptr);
    AddressRange text = source->text();
    ASSERT_LT(text.end - text.begin, UnwindSource::kRangeBytesMax);
    std::vector<UnwindRow> whole, rows;
    ASSERT_TRUE(source->Compile(text, &whole).ok());
    ExpectWellFormed(whole, text);
    EXPECT_GT(whole.size(), 500u) << path;
    for (uint64_t step : {uint64_t{4096}, uint64_t{65536}, uint64_t{10'007}}) {
      std::vector<UnwindRow> joined;
      for (uint64_t begin = text.begin; begin < text.end; begin += step) {
        AddressRange range{begin, std::min(begin + step, text.end)};
        ASSERT_TRUE(source->Compile(range, &rows).ok());
        ExpectWellFormed(rows, range);
        for (const UnwindRow& row : rows) {
          auto offset = static_cast<uint32_t>(begin - text.begin + row.offset);
          if (joined.empty() || joined.back().rule != row.rule) joined.push_back({offset, row.rule});
        }
      }
      EXPECT_EQ(joined, whole) << path << " by " << step;
    }
  }
}

TEST(UnwindSource, KnowsWhereLibcStartsThreads) {
  auto source = OpenPath("/lib/x86_64-linux-gnu/libc.so.6");
  AddressRange text = source->text();
  std::vector<UnwindRow> rows;
  ASSERT_TRUE(source->Compile(text, &rows).ok());
  std::set<trib_rule_kind> kinds;
  for (const UnwindRow& row : rows) kinds.insert(DecodeRule(row.rule).kind);
  EXPECT_TRUE(kinds.contains(TRIB_RULE_END));     // clone3's child
  EXPECT_TRUE(kinds.contains(TRIB_RULE_SIGNAL));  // __restore_rt
  EXPECT_TRUE(kinds.contains(TRIB_RULE_PLT));
  EXPECT_GE(source->starts().size(), 1u);  // clone, from its dynamic symbols
}

TEST(UnwindSource, SurvivesEveryTruncationAndManyMutations) {
  Frames frames;
  uint64_t common = frames.AddCommon({.augmentation = "zR", .augmentation_data = std::string(1, '\0')});
  for (uint64_t i = 0; i < 20; ++i) {
    frames.AddFunction(
        {common, kCode + i * 0x40, 0x30, kGrow + std::string("\x0f\x03\x76\x78\x06", 5), std::string(1, '\0')});
  }
  std::string file = FileWithTable(frames, frames.index(), 20);
  for (size_t size = 0; size < file.size(); size += size < 512 ? 1 : 509)
    CompileAll(std::string_view(file).substr(0, size));
  std::mt19937 random(4);
  size_t code_begin = 256, code_end = 64 << 10;  // not worth changing
  for (int i = 0; i < 3000; ++i) {
    std::string mutated = file;
    for (int n = 1 + i % 4; n > 0; --n) {
      size_t at = random() % (file.size() - (code_end - code_begin));
      if (at >= code_begin) at += code_end - code_begin;
      mutated[at] = static_cast<char>(random());
    }
    CompileAll(mutated);
  }
}

TEST(UnwindSource, FileCutWhileItIsReadIsAnError) {
  Frames frames;
  uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode, 0x100, kGrow});
  std::string bytes = FileWithTable(frames, frames.index(), 1);
  char path[] = "/tmp/tributary_unwind_XXXXXX";
  Fd writer(mkstemp(path));
  ASSERT_TRUE(writer.valid());
  ASSERT_EQ(write(writer.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  auto source = OpenPath(path);
  unlink(path);
  ASSERT_NE(source, nullptr);
  std::vector<UnwindRow> rows;
  ASSERT_TRUE(source->Compile({kCode, kCode + 0x100}, &rows).ok());
  EXPECT_EQ(rows.size(), 2u);
  ASSERT_EQ(ftruncate(writer.get(), 5000), 0);
  EXPECT_FALSE(source->Compile({kCode, kCode + 0x100}, &rows).ok());
  EXPECT_THAT(rows, IsEmpty());
}

}  // namespace
}  // namespace tributary
