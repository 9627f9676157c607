#include "profile/accounting.h"

namespace tributary {

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
    case LossReason::kNotTaken:
      return "not_taken";
    case LossReason::kEventOverflow:
      return "event_overflow";
    case LossReason::kMissed:
      return "missed";
    case LossReason::kTooOld:
      return "too_old";
    case LossReason::kOptedOut:
    case LossReason::kOptedOutAtReducer:
      return "opted_out";
  }
  return "unknown";
}

}  // namespace tributary
