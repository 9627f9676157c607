#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/unwind_rows_testing.h"

namespace tributary {
namespace {

using ::testing::ElementsAre;
using testing::kCode;
using testing::RowsOf;

constexpr char kFirst[] = "+0 sp+8 fp=same second=same";

std::string Bytes(std::initializer_list<int> values) {
  std::string out;
  for (int value : values) out += static_cast<char>(value);
  return out;
}

testing::Frames::Common Arm64Common() {
  // CFA = sp, return address in x30.
  return {.code_alignment = "\x04", .return_address = "\x1e", .instructions = std::string("\x0c\x1f\0", 3)};
}

std::vector<std::string> Arm64Rows(const std::string& instructions) {
  return RowsOf(instructions, Arm64Common(), kElfMachineArm64);
}

TEST(CfiProgram, RunsCompilersUsualPrologue) {
  // push rbp; mov rbp, rsp; push rbx; leave
  std::string program = Bytes({0x41, 0x0e, 16, 0x86, 2, 0x43, 0x0d, 6, 0x44, 0x83, 3, 0x45, 0x0c, 7, 8, 0xc6, 0xc3});
  EXPECT_THAT(RowsOf(program), ElementsAre(kFirst, "+1 sp+16 fp=cfa-16 second=same", "+4 fp+16 fp=cfa-16 second=same",
                                           "+8 fp+16 fp=cfa-16 second=cfa-24", "+d sp+8 fp=same second=same"));
}

TEST(CfiProgram, AdvancesByEveryWidth) {
  std::string to;
  testing::ElfImage::Append(to, kCode + 0xa0);
  std::string program = Bytes({0x02, 0x10, 0x0e, 16,   0x03, 0x10, 0, 0x0e, 24, 0x04, 0x10, 0,    0,  0,
                               0x0e, 32,   0x1d, 0x10, 0,    0,    0, 0,    0,  0,    0,    0x0e, 40, 0x01}) +
                        to + Bytes({0x0e, 48});
  EXPECT_THAT(RowsOf(program), ElementsAre(kFirst, "+10 sp+16 fp=same second=same", "+20 sp+24 fp=same second=same",
                                           "+30 sp+32 fp=same second=same", "+40 sp+40 fp=same second=same",
                                           "+a0 sp+48 fp=same second=same"));
}

TEST(CfiProgram, KnowsEveryWayToSaveARegister) {
  struct Case {
    std::string program;
    const char* rule;
  } cases[] = {
      {Bytes({0x86, 2}), "sp+8 fp=cfa-16 second=same"},
      {Bytes({0x05, 6, 2}), "sp+8 fp=cfa-16 second=same"},
      {Bytes({0x11, 6, 0x7e}), "sp+8 fp=cfa+16 second=same"},
      {Bytes({0x2f, 6, 2}), "sp+8 fp=cfa+16 second=same"},
      {Bytes({0x86, 2, 0x06, 6}), "sp+8 fp=same second=same"},
      {Bytes({0x86, 2, 0x08, 6}), "sp+8 fp=same second=same"},
      {Bytes({0x07, 6}), "sp+8 fp=lost second=same"},
      {Bytes({0x09, 6, 3}), "sp+8 fp=lost second=same"},
      {Bytes({0x14, 3, 1}), "sp+8 fp=same second=lost"},
      {Bytes({0x15, 3, 1}), "sp+8 fp=same second=lost"},
      {Bytes({0x16, 3, 1, 0x30}), "sp+8 fp=same second=lost"},
      {Bytes({0x10, 6, 2, 0x76, 0x70}), "sp+8 fp=fp-16 second=same"},  // breg6 -16
      {Bytes({0x10, 3, 2, 0x76, 0x68}), "sp+8 fp=same second=fp-24"},
      {Bytes({0x10, 6, 2, 0x76, 0x71}), "sp+8 fp=lost second=same"},  // not a multiple of 8
      {Bytes({0x10, 6, 2, 0x77, 0x00}), "sp+8 fp=lost second=same"},  // relative to rsp
      {Bytes({0x10, 6, 3, 0x76, 0x70, 0x06}), "sp+8 fp=lost second=same"},
      {Bytes({0x05, 6, 0x80, 0x80, 0x04}), "sp+8 fp=lost second=same"},   // offset over 15 bits of words
      {Bytes({0x8c, 2, 0x8d, 3, 0x2e, 16}), "sp+8 fp=same second=same"},  // registers that rules do not follow
      {Bytes({0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}), "sp+8 fp=same second=same"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(RowsOf(c.program), ElementsAre(std::string("+0 ") + c.rule)) << ::testing::PrintToString(c.program);
  }
}

TEST(CfiProgram, KnowsEveryWayToDefineTheCfa) {
  struct Case {
    std::string program;
    const char* rule;
  } cases[] = {
      {Bytes({0x0c, 6, 16}), "fp+16 fp=same second=same"},
      {Bytes({0x12, 7, 0x7e}), "sp+16 fp=same second=same"},
      {Bytes({0x13, 0x7d}), "sp+24 fp=same second=same"},
      {Bytes({0x13, 0x01}), "sp-8 fp=same second=same"},
      {Bytes({0x0d, 3}), "second+8 fp=same second=same"},
      {Bytes({0x0c, 10, 0}), "r10+0 fp=same second=lost"},
      {Bytes({0x0f, 2, 0x77, 0x20}), "sp+32 fp=same second=same"},
      {Bytes({0x0f, 3, 0x76, 0x78, 0x06}), "*(fp-8)+0 fp=same second=lost"},
      {Bytes({0x0f, 5, 0x77, 0x28, 0x06, 0x23, 0x08}), "*(sp+40)+8 fp=same second=lost"},
      {Bytes({0x0f, 5, 0x77, 0x28, 0x06, 0x38, 0x22}), "*(sp+40)+8 fp=same second=lost"},
      {Bytes({0x0f, 3, 0x76, 0x79, 0x06}), "bad"},  // the word to read is not aligned
      {Bytes({0x0f, 3, 0x7a, 0x78, 0x06}), "bad"},  // through r10
      {Bytes({0x0f, 1, 0x9c}), "bad"},
      {Bytes({0x0f, 0}), "bad"},
      {Bytes({0x0e, 0x80, 0x80, 0x80, 0x04}), "bad"},  // 8 MiB
      {Bytes({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22}), "plt"},
  };
  for (const Case& c : cases) {
    EXPECT_THAT(RowsOf(c.program), ElementsAre(std::string("+0 ") + c.rule)) << ::testing::PrintToString(c.program);
  }
}

TEST(CfiProgram, KnowsWhereReturnAddressesAre) {
  EXPECT_THAT(RowsOf(Bytes({0x07, 16})), ElementsAre("+0 end"));
  EXPECT_THAT(RowsOf(Bytes({0x09, 16, 5})), ElementsAre("+0 sp+8 ra=r5 fp=same second=lost"));
  EXPECT_THAT(RowsOf(Bytes({0x0c, 6, 16, 0x09, 16, 5})), ElementsAre("+0 bad"));
  EXPECT_THAT(RowsOf(Bytes({0x90, 2})), ElementsAre("+0 bad"));  // not at CFA - 8
  EXPECT_THAT(RowsOf(Bytes({0x10, 16, 2, 0x76, 0x08})), ElementsAre("+0 bad"));
  EXPECT_THAT(RowsOf("", {.instructions = Bytes({0x0c, 7, 8})}), ElementsAre(kFirst));
}

TEST(CfiProgram, RemembersAndRestores) {
  std::string program = Bytes({0x41, 0x0e, 16, 0x86, 2, 0x41, 0x0a, 0x0e, 8, 0xc6, 0x42, 0x0b});
  EXPECT_THAT(RowsOf(program), ElementsAre(kFirst, "+1 sp+16 fp=cfa-16 second=same", "+2 sp+8 fp=same second=same",
                                           "+4 sp+16 fp=cfa-16 second=same"));
  EXPECT_THAT(RowsOf(Bytes({0x41, 0x0b})), ElementsAre(kFirst, "+1 bad"));  // nothing remembered
  EXPECT_THAT(RowsOf(std::string(1000, '\x0a')), ElementsAre("+0 bad"));
}

TEST(CfiProgram, ExpandsStubsWithAnotherPushOffset) {
  // Indirect-branch tracking: the push is at byte 9 of 16.
  std::string program = Bytes({0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x39, 0x2a, 0x33, 0x24, 0x22});
  std::vector<std::string> rows = RowsOf(program);
  ASSERT_EQ(rows.size(), 32u);
  EXPECT_EQ(rows[0], kFirst);
  EXPECT_EQ(rows[1], "+9 sp+16 fp=same second=same");
  EXPECT_EQ(rows[2], "+10 sp+8 fp=same second=same");
  EXPECT_EQ(rows[31], "+f9 sp+16 fp=same second=same");
}

TEST(CfiProgram, MalformedInstructionsGiveABadRow) {
  for (const std::string& tail : {Bytes({0x3f}), Bytes({0x2d}), Bytes({0x0e}), Bytes({0x0c, 0x87}), Bytes({0x03, 1}),
                                  Bytes({0x10, 6, 90, 1}), Bytes({0x01, 0, 0, 0, 0, 0, 0, 0, 0})}) {
    // Padding of the entry would be read as operands, so the program fills the entry.
    std::string program = Bytes({0x41, 0x0e, 16, 0x41}) + tail;
    program.insert(0, (8 - program.size() % 8) % 8, '\0');
    EXPECT_THAT(RowsOf(program), ElementsAre(kFirst, "+1 sp+16 fp=same second=same", "+2 bad"))
        << ::testing::PrintToString(tail);
  }
}

TEST(CfiProgram, SignalFramesAreSignalsThroughout) {
  testing::Frames::Common common{.augmentation = "zS"};
  EXPECT_THAT(RowsOf(Bytes({0x0f, 3, 0x77, 0x20, 0x06, 0x41, 0x0e, 8}), common), ElementsAre("+0 signal"));
}

TEST(CfiProgram, FollowsArm64) {
  // stp x29, x30, [sp, -32]!; mov x29, sp; epilogue. negate_ra_state has no effect here.
  std::string program = Bytes({0x2d, 0x41, 0x0e, 32, 0x9d, 4, 0x9e, 3, 0x41, 0x0d, 29, 0x44, 0x0c, 31, 0, 0xdd, 0xde});
  EXPECT_THAT(Arm64Rows(program), ElementsAre("+0 sp+0 fp=same second=same", "+4 sp+32 fp=cfa-32 second=cfa-24",
                                              "+8 fp+32 fp=cfa-32 second=cfa-24", "+18 sp+0 fp=same second=same"));
  EXPECT_THAT(Arm64Rows(Bytes({0x07, 30})), ElementsAre("+0 end"));
  EXPECT_THAT(Arm64Rows(Bytes({0x09, 30, 15})), ElementsAre("+0 sp+0 ra=r15 fp=same second=lost"));
  EXPECT_THAT(Arm64Rows(Bytes({0x16, 30, 1, 0x30})), ElementsAre("+0 bad"));  // the return address is lost with x30
  EXPECT_THAT(Arm64Rows(Bytes({0x0c, 9, 0})), ElementsAre("+0 bad"));
}

}  // namespace
}  // namespace tributary
