#include "kernel-collector/unwind/stack_ending.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

Ending EndingOf(trib_stop stop, uint32_t flags = 0, bool at_start = false) {
  trib_sample sample = {};
  sample.flags = flags;
  return StackEnding(sample, WalkedStack{.user = {1}, .stop = stop}, at_start);
}

TEST(StackEnding, OnlyAStartIsComplete) {
  EXPECT_EQ(EndingOf(TRIB_STOP_END), Ending::kComplete);
  EXPECT_EQ(EndingOf(TRIB_STOP_STACK_START), Ending::kComplete);
  EXPECT_EQ(EndingOf(TRIB_STOP_FRAME_POINTER_END, 0, /*at_start=*/true), Ending::kComplete);
  EXPECT_EQ(EndingOf(TRIB_STOP_FRAME_POINTER_END, 0, /*at_start=*/false), Ending::kFramePointerLost);
  // A walk that did not end at a start is not complete just because it stopped in such a function.
  for (trib_stop stop : {TRIB_STOP_DEPTH, TRIB_STOP_NO_PROCESS, TRIB_STOP_NO_MAPPING, TRIB_STOP_NO_PAGE,
                         TRIB_STOP_BAD_RULE, TRIB_STOP_UNREADABLE, TRIB_STOP_NO_PROGRESS}) {
    EXPECT_NE(EndingOf(stop, 0, /*at_start=*/true), Ending::kComplete) << stop;
  }
}

TEST(StackEnding, WithoutUserMemoryThereIsOnlyTheKernel) {
  EXPECT_EQ(EndingOf(TRIB_STOP_NONE, TRIB_FLAG_KERNEL_THREAD | TRIB_FLAG_IN_KERNEL), Ending::kKernelOnly);
  EXPECT_EQ(EndingOf(TRIB_STOP_NONE, TRIB_FLAG_IN_KERNEL), Ending::kKernelOnly);  // inside execve or exit
  EXPECT_EQ(EndingOf(TRIB_STOP_NONE), Ending::kUnreadableMemory);
}

TEST(StackEnding, EveryOtherStopHasItsOwnReason) {
  EXPECT_EQ(EndingOf(TRIB_STOP_DEPTH), Ending::kTruncatedDepth);
  EXPECT_EQ(EndingOf(TRIB_STOP_NO_PROCESS), Ending::kNoTable);
  EXPECT_EQ(EndingOf(TRIB_STOP_NO_PAGE), Ending::kNoTable);
  EXPECT_EQ(EndingOf(TRIB_STOP_NO_MAPPING), Ending::kNoMapping);
  EXPECT_EQ(EndingOf(TRIB_STOP_BAD_RULE), Ending::kBadRow);
  EXPECT_EQ(EndingOf(TRIB_STOP_UNREADABLE), Ending::kUnreadableMemory);
  EXPECT_EQ(EndingOf(TRIB_STOP_NO_PROGRESS), Ending::kNoProgress);
}

TEST(StackEnding, AWalkByAReplacedMappingIsStale) {
  trib_sample sample = {};
  EXPECT_EQ(StackEnding(sample, WalkedStack{.user = {1}, .stop = TRIB_STOP_END, .stale = true}, true),
            Ending::kStaleMapping);
}

}  // namespace
}  // namespace tributary
