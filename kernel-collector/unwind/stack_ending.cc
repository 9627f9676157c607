#include "kernel-collector/unwind/stack_ending.h"

namespace tributary {

Ending StackEnding(const trib_sample& sample, const WalkedStack& walked, bool at_start) {
  if ((sample.flags & TRIB_FLAG_KERNEL_THREAD) != 0) return Ending::kKernelOnly;
  if (walked.stale) return Ending::kStaleMapping;
  // There is no user memory to walk: the thread is inside execve or exit.
  if (walked.stop == TRIB_STOP_NONE) {
    return (sample.flags & TRIB_FLAG_IN_KERNEL) != 0 ? Ending::kKernelOnly : Ending::kUnreadableMemory;
  }
  switch (walked.stop) {
    case TRIB_STOP_END:
    case TRIB_STOP_STACK_START:
      return Ending::kComplete;
    case TRIB_STOP_FRAME_POINTER_END:
      return at_start ? Ending::kComplete : Ending::kFramePointerLost;
    case TRIB_STOP_DEPTH:
      return Ending::kTruncatedDepth;
    case TRIB_STOP_NO_PROCESS:
    case TRIB_STOP_NO_PAGE:
      return Ending::kNoTable;
    case TRIB_STOP_NO_MAPPING:
      return Ending::kNoMapping;
    case TRIB_STOP_BAD_RULE:
      return Ending::kBadRow;
    case TRIB_STOP_UNREADABLE:
      return Ending::kUnreadableMemory;
    case TRIB_STOP_NO_PROGRESS:
      return Ending::kNoProgress;
    case TRIB_STOP_NONE:
    case TRIB_STOP_COUNT:
      break;
  }
  return Ending::kUnknown;
}

}  // namespace tributary
