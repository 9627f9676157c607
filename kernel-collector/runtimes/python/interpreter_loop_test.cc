#include "kernel-collector/runtimes/python/interpreter_loop.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "elf/cfi_frames_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;
using testing::Frames;

// A program with the interpreter's loop, 64 other functions, and a part of the loop. The loop jumps to addresses in the
// other functions, and then into the middle of the part.
class LoopImage {
 public:
  static constexpr uint64_t kLoopBytes = 64 << 10, kOtherBytes = 256, kOthers = 64;

  size_t jumps = 10;  // to other functions
  std::string part_section = ".text.cold";
  size_t linkage_sections = 1;  // before the section of the part

  absl::StatusOr<std::vector<RuntimeBinary::Range>> Find() {
    // The sections' addresses do not depend on their contents.
    const std::string first = Write(ElfImage::kBase, ElfImage::kBase);
    const uint64_t text = AddressOf(first, ".text");
    part_ = AddressOf(first, part_section);
    const std::string bytes = Write(text, part_);
    auto file = ElfFile::FromMemory(bytes);
    if (!file.ok()) return file.status();
    return FindInterpreterLoop(**file, {.address = text, .size = kLoopBytes});
  }
  uint64_t part() const { return part_; }

 private:
  static uint64_t AddressOf(const std::string& bytes, std::string_view name) {
    auto file = ElfFile::FromMemory(bytes);
    for (const ElfSection& section : **(*file)->Sections()) {
      if (section.name == name) return section.address;
    }
    return 0;
  }

  std::string Write(uint64_t text, uint64_t part) const {
    const uint64_t others = text + kLoopBytes;
    std::string code(kLoopBytes + kOthers * kOtherBytes, '\x90');
    const auto jump = [&](size_t number, uint64_t target) {
      const size_t at = number * 5;
      const auto distance = static_cast<int32_t>(target - (text + at + 5));
      code[at] = '\xe9';
      std::memcpy(code.data() + at + 1, &distance, sizeof(distance));
    };
    // To the functions' first bytes, as the last action of the loop. Then, if there are more jumps, to addresses
    // without a function: such targets count, too.
    for (size_t i = 0; i < jumps; ++i) jump(i, i < kOthers ? others + i * kOtherBytes : ElfImage::kBase - 8192 + i);
    jump(jumps, part + 8);
    Frames frames;
    const uint64_t common = frames.AddCommon({});
    frames.AddFunction({common, text, kLoopBytes});
    for (uint64_t i = 0; i < kOthers; ++i) frames.AddFunction({common, others + i * kOtherBytes, kOtherBytes});
    frames.AddFunction({common, part, 64});
    frames.AddEndMark();
    ElfImage image;
    for (size_t i = 0; i < linkage_sections; ++i) image.AddSection(".plt.other", 1, std::string(16, '\x90'), 6);
    image.AddSection(".text", 1, code, 6);
    image.AddSection(part_section, 1, std::string(64, '\x90'), 6);
    image.AddSection(".eh_frame", 1, frames.bytes(), 2);
    return image.Write();
  }

  uint64_t part_ = 0;
};

TEST(InterpreterLoop, FindsAPartThatALoopJumpsInto) {
  LoopImage image;
  auto ranges = image.Find();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  ASSERT_EQ(ranges->size(), 2u);
  EXPECT_EQ((*ranges)[1].begin, image.part());
  EXPECT_EQ((*ranges)[1].end, image.part() + 64);
}

TEST(InterpreterLoop, LeavesOutTheStubsOfOtherFiles) {
  for (const char* section : {".plt", ".plt.sec", ".plt.got"}) {
    LoopImage image;
    image.part_section = section;
    auto ranges = image.Find();
    ASSERT_TRUE(ranges.ok()) << ranges.status();
    EXPECT_EQ(ranges->size(), 1u) << section;
  }
}

// Each jump costs a search. The targets are considered in ascending order, so the part is the last one.
TEST(InterpreterLoop, BoundsTheJumpsAndTheSections) {
  LoopImage image;
  image.jumps = 4095;
  auto ranges = image.Find();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(ranges->size(), 2u);
  image.jumps = 4096;
  ranges = image.Find();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(ranges->size(), 1u) << "the jump to the part is the 4097th";
  image.jumps = 10;
  image.part_section = ".plt";
  image.linkage_sections = 20;
  ranges = image.Find();
  ASSERT_TRUE(ranges.ok()) << ranges.status();
  EXPECT_EQ(ranges->size(), 2u) << "the section is the 21st of its kind";
}

}  // namespace
}  // namespace tributary
