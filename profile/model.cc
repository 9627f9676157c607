#include "profile/model.h"

namespace tributary {

std::string_view EndingName(Ending ending) {
  switch (ending) {
    case Ending::kUnknown:
      return "unknown";
    case Ending::kComplete:
      return "complete";
    case Ending::kKernelOnly:
      return "kernel_only";
    case Ending::kTruncatedDepth:
      return "truncated_depth";
    case Ending::kUnreadableMemory:
      return "unreadable_memory";
    case Ending::kNoMapping:
      return "no_mapping";
    case Ending::kNoTable:
      return "no_table";
    case Ending::kBadRow:
      return "bad_row";
    case Ending::kFramePointerLost:
      return "frame_pointer_lost";
    case Ending::kNoProgress:
      return "no_progress";
    case Ending::kStaleMapping:
      return "stale_mapping";
  }
  return "unknown";
}

std::string_view LossReasonName(LossReason reason) {
  switch (reason) {
    case LossReason::kRingFull:
      return "ring_full";
    case LossReason::kStackError:
      return "stack_error";
    case LossReason::kHoldOverflow:
      return "hold_overflow";
    case LossReason::kBadRecord:
      return "bad_record";
    case LossReason::kBatchOverflow:
      return "batch_overflow";
    case LossReason::kRejected:
      return "rejected";
    case LossReason::kShutdown:
      return "shutdown";
    case LossReason::kInDoubt:
      return "in_doubt";
    case LossReason::kCollectorKilled:
      return "collector_killed";
    case LossReason::kSpoolOverflow:
      return "spool_overflow";
    case LossReason::kSpoolDamaged:
      return "spool_damaged";
  }
  return "unknown";
}

}  // namespace tributary
