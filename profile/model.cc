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
    case Ending::kCutByQuota:
      return "cut_by_quota";
    case Ending::kRuntimeLost:
      return "runtime_lost";
  }
  return "unknown";
}

}  // namespace tributary
