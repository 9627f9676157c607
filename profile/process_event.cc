#include "profile/process_event.h"

namespace tributary {

std::string_view ProcessEventKindName(ProcessEventKind kind) {
  switch (kind) {
    case ProcessEventKind::kStart:
      return "start";
    case ProcessEventKind::kExec:
      return "exec";
    case ProcessEventKind::kExit:
      return "exit";
    case ProcessEventKind::kSeenRunning:
      return "seen_running";
    case ProcessEventKind::kEndUnknown:
      return "end_unknown";
    case ProcessEventKind::kSum:
      return "sum";
  }
  return "unknown";
}

std::optional<ProcessEventKind> FindProcessEventKind(std::string_view name) {
  for (uint8_t number = 1; number <= kProcessEventKindMax; ++number) {
    const auto kind = static_cast<ProcessEventKind>(number);
    if (ProcessEventKindName(kind) == name) return kind;
  }
  return std::nullopt;
}

}  // namespace tributary
