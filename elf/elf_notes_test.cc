#include "elf/elf_notes.h"

#include <gtest/gtest.h>

#include "elf/elf_image_testing.h"

namespace tributary {
namespace {

using testing::ElfImage;

TEST(FindNote, LooksPastOtherOwnersAndTypes) {
  std::string notes =
      ElfImage::Note("GNU", 1, "abi") + ElfImage::Note("Linux", 3, "no") + ElfImage::Note("GNU", 3, "the id");
  EXPECT_EQ(FindNote(notes, 4, "GNU", 3), "the id");
  EXPECT_EQ(FindNote(notes, 4, "Go", 4), std::nullopt);
}

TEST(FindNote, AlignsByEightWhereTheSegmentDoes) {
  std::string notes;
  for (uint32_t word : {4u, 4u, 5u}) ElfImage::Append(notes, word);
  notes += std::string("GNU\0", 4) + "prop" + std::string(4, '\0');  // 16 + 4, padded to 24
  notes += ElfImage::Note("GNU", 3, "the id");
  EXPECT_EQ(FindNote(notes, 8, "GNU", 3), "the id");
}

TEST(FindNote, StopsAtWrongSizes) {
  for (uint32_t lie : {5u, 0x7fffffffu, 0xfffffff0u, 0xffffffffu}) {
    for (int word : {0, 1}) {
      std::string notes = ElfImage::Note("GNU", 1, "abi");
      std::memcpy(notes.data() + word * 4, &lie, 4);
      notes += ElfImage::Note("GNU", 3, "the id");
      auto found = FindNote(notes, 4, "GNU", 3);
      EXPECT_TRUE(!found || found->size() <= notes.size());
    }
  }
  std::string notes = ElfImage::Note("GNU", 3, "the id");
  for (size_t size = 0; size < 22; ++size) {
    EXPECT_EQ(FindNote(std::string_view(notes).substr(0, size), 4, "GNU", 3), std::nullopt) << size;
  }
}

}  // namespace
}  // namespace tributary
