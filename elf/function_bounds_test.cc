#include "elf/function_bounds.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <random>
#include <sstream>

#include "elf/cfi_frames_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::ElfImage;
using testing::FileWithTable;
using testing::Frames;
using testing::ImageWith;
using ::testing::IsEmpty;
using testing::kCode;

FunctionBounds BoundsOf(std::string_view bytes) {
  auto file = ElfFile::FromMemory(bytes);
  EXPECT_TRUE(file.ok()) << file.status();
  auto bounds = FindFunctionBounds(**file);
  EXPECT_TRUE(bounds.ok()) << bounds.status();
  return bounds.ok() ? *std::move(bounds) : FunctionBounds();
}

// Ends by begins, as readelf reports them.
std::map<uint64_t, uint64_t> ReadelfBounds(const std::string& path) {
  std::map<uint64_t, uint64_t> bounds;
  FILE* pipe = popen(("readelf --debug-dump=no-follow-links --debug-dump=frames " + path).c_str(), "r");
  char line[4096];
  bool eh_frame = false;
  while (fgets(line, sizeof(line), pipe) != nullptr) {
    const std::string_view text = line;
    if (text.starts_with("Contents of the")) eh_frame = text.find(".eh_frame") != std::string_view::npos;
    const size_t at = text.find(" FDE cie=");
    const size_t pc = text.find(" pc=");
    if (!eh_frame || at == std::string_view::npos || pc == std::string_view::npos) continue;
    const uint64_t begin = std::stoull(std::string(text.substr(pc + 4)), nullptr, 16);
    const uint64_t end = std::stoull(std::string(text.substr(text.find("..", pc) + 2)), nullptr, 16);
    if (end > begin) bounds[begin] = std::max(bounds[begin], end);
  }
  EXPECT_EQ(pclose(pipe), 0) << path;
  return bounds;
}

TEST(FunctionBounds, AgreeWithReadelf) {
  size_t compared = 0;
  for (const std::string path : {"/lib/x86_64-linux-gnu/libc.so.6", "/lib/x86_64-linux-gnu/libstdc++.so.6",
                                 "/lib64/ld-linux-x86-64.so.2", "/usr/bin/python3", "/proc/self/exe"}) {
    char real[4096];
    ASSERT_NE(realpath(path.c_str(), real), nullptr);
    const auto expected = ReadelfBounds(real);
    std::ifstream in(path, std::ios::binary);
    std::string bytes(std::istreambuf_iterator<char>(in), {});
    for (const bool with_section_headers : {true, false}) {
      if (!with_section_headers) {
        std::memset(bytes.data() + offsetof(ElfHeader, section_header_offset), 0, sizeof(uint64_t));
      }
      const FunctionBounds bounds = BoundsOf(bytes);
      EXPECT_EQ(bounds.bad_entries, 0u) << path;
      std::map<uint64_t, uint64_t> got;
      for (const AddressRange& range : bounds.ranges) got[range.begin] = range.end;
      EXPECT_EQ(got.size(), bounds.ranges.size()) << path;
      EXPECT_EQ(got, expected) << path;
      compared += got.size();
    }
  }
  EXPECT_GT(compared, 20'000u);
}

TEST(FunctionBounds, AreTheSameByTableAndByScan) {
  Frames frames;
  const uint64_t common = frames.AddCommon({});
  frames.AddFunction({common, kCode + 0x80, 0x10, ""});
  frames.AddFunction({common, kCode, 0x40, ""});
  frames.AddFunction({common, kCode + 0x20, 0x10, ""});       // inside another
  frames.AddFunction({common, kCode, 0x30, ""});              // same begin as another
  frames.AddFunction({common, kCode + 0x60, 0, ""});          // no code
  frames.AddFunction({common, 0x10, 0x10, ""});               // dropped by the linker
  frames.AddFunction({common, kCode + 0x100, 1u << 30, ""});  // ends outside: cut, or left out by the scan
  const AddressRange a{kCode, kCode + 0x40}, b{kCode + 0x20, kCode + 0x30}, c{kCode + 0x80, kCode + 0x90};
  EXPECT_THAT(BoundsOf(ImageWith(".eh_frame", frames.bytes()).Write()).ranges, ElementsAre(a, b, c));
  const std::string file = FileWithTable(frames, frames.index(), 7);
  const FunctionBounds searched = BoundsOf(file);
  ASSERT_EQ(searched.ranges.size(), 4u);
  EXPECT_THAT(std::vector(searched.ranges.begin(), searched.ranges.begin() + 3), ElementsAre(a, b, c));
  EXPECT_EQ(searched.ranges[3].begin, kCode + 0x100);
  EXPECT_EQ(searched.ranges[3].end, ElfImage::kBase + file.size());
}

TEST(FunctionBounds, ReadArm64) {
  Frames frames;
  const uint64_t common = frames.AddCommon({.return_address = "\x1e", .instructions = std::string("\x0c\x1f\x00", 3)});
  frames.AddFunction({common, kCode, 0x40, ""});
  ElfImage image = ImageWith(".eh_frame", frames.bytes());
  image.set_machine(kElfMachineArm64);
  const std::string file = image.Write();
  EXPECT_THAT(BoundsOf(file).ranges, ElementsAre(AddressRange{kCode, kCode + 0x40}));
}

TEST(FunctionBounds, CountBadEntries) {
  ElfImage image;
  image.AddSection(".text", 1, std::string(64, '\x90'), 6);
  EXPECT_THAT(BoundsOf(image.Write()).ranges, IsEmpty());
  Frames frames;
  const uint64_t common = frames.AddCommon({});
  const uint64_t first = frames.AddFunction({common, kCode, 0x10, ""});
  frames.AddFunction({common, kCode + 0x10, 0x10, ""});
  // One item of the table states another begin than its entry does. Another item points to no function entry.
  const FunctionBounds bounds =
      BoundsOf(FileWithTable(frames, {{kCode + 4, first}, {kCode + 0x10, frames.index()[1].second}, {kCode, 0}}, 3));
  EXPECT_THAT(bounds.ranges, ElementsAre(AddressRange{kCode + 0x10, kCode + 0x20}));
  EXPECT_EQ(bounds.bad_entries, 2u);
}

TEST(FunctionBounds, SurviveTruncationAndFlippedBytes) {
  Frames frames;
  const uint64_t common = frames.AddCommon({});
  for (uint64_t i = 0; i < 4; ++i) frames.AddFunction({common, kCode + i * 0x40, 0x30, ""});
  const std::string good = FileWithTable(frames, frames.index(), 4);
  std::mt19937 random(7);
  size_t found = 0;
  for (int round = 0; round < 5'000; ++round) {
    std::string bytes = good;
    // Headers are at the begin. Tables and frames follow 64 KiB of code.
    for (int flips = 1 + random() % 4; flips > 0; --flips) {
      const size_t behind = bytes.size() - (64u << 10) - 256;
      size_t at = random() % (256 + behind);
      if (at >= 256) at += 64u << 10;
      bytes[at] = static_cast<char>(random());
    }
    auto file = ElfFile::FromMemory(bytes);
    if (!file.ok()) continue;
    auto bounds = FindFunctionBounds(**file);
    if (!bounds.ok()) continue;
    EXPECT_LE(bounds->ranges.size(), 4u);
    found += bounds->ranges.size();
  }
  EXPECT_GT(found, 1000u);
}

}  // namespace
}  // namespace tributary
