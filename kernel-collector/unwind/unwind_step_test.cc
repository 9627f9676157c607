#include "kernel-collector/unwind/unwind_step.h"

#include <gtest/gtest.h>

#include <map>
#include <vector>

namespace tributary {
namespace {

constexpr uint64_t kStack = 0x7fff'0000;

uint64_t Rule(trib_rule_kind kind, int32_t cfa, int fp = TRIB_SAVED_SAME, int fp_offset = 0,
              int second = TRIB_SAVED_SAME, int last = 0) {
  return uint64_t{kind} | static_cast<uint64_t>(fp) << 4 | static_cast<uint64_t>(second) << 6 |
         static_cast<uint64_t>(static_cast<uint32_t>(cfa) & 0xffffff) << 8 |
         static_cast<uint64_t>(static_cast<uint16_t>(fp_offset)) << 32 |
         static_cast<uint64_t>(static_cast<uint16_t>(last)) << 48;
}

class UnwindStepTest : public testing::Test {
 protected:
  void Put(uint64_t address, uint64_t value) { words[(address - kStack) / 8] = value; }
  StepResult Step(uint64_t rule, Architecture architecture = Architecture::kX86) {
    StackCopy copy{
        kStack, {reinterpret_cast<const uint8_t*>(words.data()), words.size() * 8}, start_stack, thread_pointer};
    return StepByRule(rule, copy, architecture, &registers);
  }
  trib_stop Stop(uint64_t rule, Architecture architecture = Architecture::kX86) {
    StepResult result = Step(rule, architecture);
    return result.stopped ? result.stop : TRIB_STOP_COUNT;
  }

  std::vector<uint64_t> words = std::vector<uint64_t>(128);
  uint64_t start_stack = 0, thread_pointer = 0;
  FrameRegisters registers{0x401000, kStack, kStack + 64, 0x5ec, false};
};

TEST_F(UnwindStepTest, CfaFromTheStackPointer) {
  Put(kStack + 24, 0x402000);
  Put(kStack + 16, 0xf9);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_SP, 32, TRIB_SAVED_CFA, -2)).stopped);
  EXPECT_EQ(registers.pc, 0x402000u);
  EXPECT_EQ(registers.sp, kStack + 32);
  EXPECT_EQ(registers.fp, 0xf9u);
  EXPECT_EQ(registers.second, 0x5ecu);
  EXPECT_TRUE(registers.is_caller);
}

TEST_F(UnwindStepTest, CfaFromTheFramePointerAndRegistersSavedByIt) {
  Put(kStack + 72, 0x402000);
  Put(kStack + 64, 0xf9);
  Put(kStack + 56, 0xb);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_FP, 16, TRIB_SAVED_FP, 0, TRIB_SAVED_FP, -1)).stopped);
  EXPECT_EQ(registers.sp, kStack + 80);
  EXPECT_EQ(registers.fp, 0xf9u);
  EXPECT_EQ(registers.second, 0xbu);
}

TEST_F(UnwindStepTest, PoppedRegistersHaveTheirCallersValue) {
  Put(kStack, 0x402000);
  registers.fp = 0xf9;
  ASSERT_FALSE(Step(Rule(TRIB_RULE_SP, 8, TRIB_SAVED_CFA, -5, TRIB_SAVED_CFA, -6)).stopped);
  EXPECT_EQ(registers.pc, 0x402000u);
  EXPECT_EQ(registers.fp, 0xf9u);
  EXPECT_EQ(registers.second, 0x5ecu);
}

TEST_F(UnwindStepTest, CfaFromTheSecondRegister) {
  registers.second = kStack + 40;
  Put(kStack + 48, 0x402000);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_SECOND, 16, TRIB_SAVED_LOST)).stopped);
  EXPECT_EQ(registers.sp, kStack + 56);
  EXPECT_EQ(registers.fp, 0u);
}

TEST_F(UnwindStepTest, CfaFromMemory) {
  Put(kStack + 56, kStack + 80);  // fp − 8
  Put(kStack + 80, 0x402000);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_DEREF_FP, 8, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, -1)).stopped);
  EXPECT_EQ(registers.sp, kStack + 88);
  EXPECT_EQ(registers.second, 0u) << "lost";
  registers = {0x401000, kStack, kStack + 64, 0x5ec, false};
  Put(kStack + 8, kStack + 80);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_DEREF_SP, 8, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 1)).stopped);
  EXPECT_EQ(registers.pc, 0x402000u);
}

TEST_F(UnwindStepTest, PltEntriesHaveOnePushMoreInTheirSecondHalf) {
  for (auto [pc, cfa] : std::map<uint64_t, uint64_t>{{0x40100a, 8}, {0x40100b, 16}, {0x401010, 8}}) {
    registers = {pc, kStack, 0, 0, false};
    Put(kStack + cfa - 8, 0x402000);
    ASSERT_FALSE(Step(Rule(TRIB_RULE_PLT, 0)).stopped);
    EXPECT_EQ(registers.sp, kStack + cfa);
  }
}

TEST_F(UnwindStepTest, KnowsOnlyFollowedRegisters) {
  EXPECT_EQ(Stop(Rule(TRIB_RULE_REGISTER, 8, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 10)), TRIB_STOP_BAD_RULE);
  EXPECT_EQ(Stop(Rule(TRIB_RULE_RETURN_REGISTER, 8, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 5)), TRIB_STOP_BAD_RULE);
  Put(kStack + 64, 0x402000);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_REGISTER, 8, TRIB_SAVED_SAME, 0, TRIB_SAVED_SAME, 6)).stopped);
  EXPECT_EQ(registers.sp, kStack + 72);
}

TEST_F(UnwindStepTest, EndsAndBadRules) {
  EXPECT_EQ(Stop(Rule(TRIB_RULE_END, 0)), TRIB_STOP_END);
  EXPECT_EQ(Stop(Rule(TRIB_RULE_BAD, 0)), TRIB_STOP_BAD_RULE);
  EXPECT_EQ(Stop(15), TRIB_STOP_BAD_RULE);
  EXPECT_EQ(registers.pc, 0x401000u) << "as they were";
}

TEST_F(UnwindStepTest, MemoryOutsideTheCopy) {
  EXPECT_EQ(Stop(Rule(TRIB_RULE_SP, 128 * 8 + 16)), TRIB_STOP_NO_PAGE);
  EXPECT_EQ(Stop(Rule(TRIB_RULE_SP, 0)), TRIB_STOP_UNREADABLE);
  registers.fp = UINT64_MAX - 30;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_NO_PAGE);
  registers.fp = kStack - 8;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_UNREADABLE);
  words.clear();
  registers.fp = kStack;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_NO_PAGE);
}

TEST_F(UnwindStepTest, ACallersFrameLiesAbove) {
  registers = {0x401000, kStack + 64, kStack, 0, true};
  EXPECT_EQ(Stop(Rule(TRIB_RULE_SP, 0)), TRIB_STOP_NO_PROGRESS);
  EXPECT_EQ(Stop(Rule(TRIB_RULE_FP, 16)), TRIB_STOP_NO_PROGRESS);
  Put(kStack + 8, 0x402000);
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_NO_PROGRESS);
}

TEST_F(UnwindStepTest, AReturnAddressOfZeroIsTheEnd) {
  EXPECT_EQ(Stop(Rule(TRIB_RULE_SP, 32)), TRIB_STOP_FRAME_POINTER_END);
}

TEST_F(UnwindStepTest, FramePointerChains) {
  Put(kStack + 64, kStack + 96);
  Put(kStack + 72, 0x402000);
  ASSERT_FALSE(Step(TRIB_RULE_NONE).stopped);
  EXPECT_EQ(registers.pc, 0x402000u);
  EXPECT_EQ(registers.sp, kStack + 80);
  EXPECT_EQ(registers.fp, kStack + 96);
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_FRAME_POINTER_END);  // a return address of 0
  registers.fp = 0;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_FRAME_POINTER_END);
  start_stack = registers.sp + TRIB_START_STACK_BYTES;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_FRAME_POINTER_END);
  start_stack -= 8;
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_STACK_START);
  registers.fp = 1;  // start-up code that uses the register for another purpose
  EXPECT_EQ(Stop(TRIB_RULE_NONE), TRIB_STOP_STACK_START);
  registers.fp = registers.sp + 16;  // room for one more frame
  Put(registers.fp + 8, 0x402000);
  EXPECT_FALSE(Step(TRIB_RULE_NONE).stopped);
}

TEST_F(UnwindStepTest, SignalFrames) {
  Put(kStack + 120, 1);
  Put(kStack + 128, 2);
  Put(kStack + 160, 0x10);  // any stack
  Put(kStack + 168, 0x403000);
  ASSERT_FALSE(Step(TRIB_RULE_SIGNAL).stopped);
  EXPECT_EQ(registers.fp, 1u);
  EXPECT_EQ(registers.second, 2u);
  EXPECT_EQ(registers.sp, 0x10u);
  EXPECT_EQ(registers.pc, 0x403000u);
  EXPECT_FALSE(registers.is_caller);
  registers = {0x401000, kStack, 0, 0, true};
  Put(kStack + 544, 1);
  Put(kStack + 552, 2);
  Put(kStack + 560, 0x10);
  Put(kStack + 568, 0x403000);
  ASSERT_FALSE(Step(TRIB_RULE_SIGNAL, Architecture::kArm64).stopped);
  EXPECT_EQ(registers.pc, 0x403000u);
}

TEST_F(UnwindStepTest, Arm64ReturnsThroughTheLinkRegisterAndDropsItsAuthentication) {
  registers.second = 0x00a5'0000'0040'2000;
  ASSERT_FALSE(Step(Rule(TRIB_RULE_SP, 0), Architecture::kArm64).stopped);
  EXPECT_EQ(registers.pc, 0x402000u);
  EXPECT_EQ(registers.sp, kStack) << "a leaf needs no frame";
  Put(kStack + 8, 0x00a5'0000'0040'3000);
  Put(kStack, kStack + 32);
  ASSERT_FALSE(Step(Rule(TRIB_RULE_SP, 16, TRIB_SAVED_CFA, -2, TRIB_SAVED_CFA, -1), Architecture::kArm64).stopped);
  EXPECT_EQ(registers.pc, 0x403000u);
  EXPECT_EQ(registers.fp, kStack + 32);
}

}  // namespace
}  // namespace tributary
