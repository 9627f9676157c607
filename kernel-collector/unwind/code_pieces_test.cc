#include "kernel-collector/unwind/code_pieces.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

std::vector<CodePiece> Pieces(const Mapping& mapping, const CodeFile& file) {
  std::vector<CodePiece> pieces;
  ForEachPiece(mapping, file, [&](const CodePiece& piece) {
    pieces.push_back(piece);
    return true;
  });
  return pieces;
}

TEST(CodePieces, AnOrdinaryMappingIsOne) {
  CodeFile file;
  file.segments = {{0, 0x800, 0x400000, 0x800, false}, {0x1000, 0x1234, 0x401000, 0x1234, true}};
  auto pieces = Pieces({0x7000'1000, 0x7000'3000, 0x1000}, file);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_TRUE(pieces[0].in_segment);
  EXPECT_EQ(pieces[0].start, 0x7000'1000u);
  EXPECT_EQ(pieces[0].end, 0x7000'3000u);
  EXPECT_EQ(0x7000'1000 - pieces[0].bias, 0x401000u);
}

TEST(CodePieces, ASegmentMayBeginWithinItsPage) {
  CodeFile file;  // the layout of lld
  file.segments = {{0, 0x5a0, 0x200000, 0x5a0, false}, {0x5a0, 0x1000, 0x2015a0, 0x1000, true}};
  auto pieces = Pieces({0x7000'1000, 0x7000'3000, 0}, file);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(0x7000'15a0 - pieces[0].bias, 0x2015a0u);
}

TEST(CodePieces, AMappingOfTheWholeFile) {
  CodeFile file;
  file.segments = {{0x1000, 0x1000, 0x11000, 0x1000, true}, {0x4000, 0x10, 0x24000, 0x10, true}};
  auto pieces = Pieces({0x70000, 0x78000, 0}, file);
  ASSERT_EQ(pieces.size(), 5u);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ(pieces[i].in_segment, i % 2 == 1) << i;
  EXPECT_EQ(pieces[3].start, 0x74000u);
  EXPECT_EQ(pieces[3].end, 0x75000u);
  EXPECT_EQ(0x74000 - pieces[3].bias, 0x24000u);
  EXPECT_EQ(PieceAt({0x70000, 0x78000, 0}, file, 0x74004).bias, pieces[3].bias);
  EXPECT_FALSE(PieceAt({0x70000, 0x78000, 0}, file, 0x77fff).in_segment);
}

TEST(CodePieces, SegmentsThatShareAPageKeepTheirBytes) {
  CodeFile file;
  file.segments = {{0x1000, 0x800, 0x11000, 0x800, true}, {0x1800, 0x800, 0x22800, 0x800, true}};
  auto pieces = Pieces({0x70000, 0x71000, 0x1000}, file);
  ASSERT_EQ(pieces.size(), 2u);
  EXPECT_EQ(pieces[0].end, 0x70800u);
  EXPECT_EQ(0x70800 - pieces[1].bias, 0x22800u);
}

TEST(CodePieces, IgnoresSegmentsWithImpossibleSizes) {
  CodeFile file;
  file.segments = {{UINT64_MAX - 5, 100, 0, 100, true}, {0, UINT64_MAX, 0, UINT64_MAX, true}};
  auto pieces = Pieces({0x70000, 0x71000, UINT64_MAX - 10}, file);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_FALSE(pieces[0].in_segment);
}

}  // namespace
}  // namespace tributary
