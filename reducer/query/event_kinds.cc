#include "reducer/query/event_kinds.h"

#include <fmt/format.h>

#include <optional>

#include "base/log.h"
#include "base/status.h"
#include "profile/signal_name.h"

namespace tributary {

bool IsCrash(const store::ProcessEventRow& event) {
  const bool has_end = event.kind == ProcessEventKind::kExit || event.kind == ProcessEventKind::kSum;
  return has_end && IsCrashSignal(event.end.signal);
}

bool HasFailed(const store::ProcessEventRow& event) {
  const bool has_end = event.kind == ProcessEventKind::kExit || event.kind == ProcessEventKind::kSum;
  return has_end && (event.end.exit_code != 0 || event.end.signal != 0);
}

absl::StatusOr<EventKinds> EventKinds::Parse(std::string_view text) {
  EventKinds kinds;
  if (text.empty()) return kinds;
  kinds.kinds_ = 0;
  for (;;) {
    const size_t comma = text.find(',');
    const std::string_view name = text.substr(0, comma);
    if (const std::optional<ProcessEventKind> kind = FindProcessEventKind(name)) {
      kinds.kinds_ |= 1u << static_cast<uint8_t>(*kind);
    } else if (name == "crash") {
      kinds.crash_ = true;
    } else if (name == "oom") {
      kinds.oom_ = true;
    } else if (name == "failed") {
      kinds.failed_ = true;
    } else if (name == "restart") {
      kinds.restart_ = true;
    } else {
      return Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("kind: '{}' is not a kind of process event: give start, exec, exit, seen_running, "
                               "end_unknown, sum, crash, oom, failed or restart",
                               EscapeForDisplay(name.substr(0, 64))));
    }
    if (comma == std::string_view::npos) return kinds;
    text.remove_prefix(comma + 1);
  }
}

bool EventKinds::Has(const store::ProcessEventRow& event) const {
  // A damaged store may have any kind.
  const auto kind = static_cast<uint8_t>(event.kind);
  const bool is_chosen = kind <= kProcessEventKindMax ? (kinds_ >> kind & 1) != 0 : kinds_ == ~0u;
  return is_chosen || (crash_ && IsCrash(event)) || (oom_ && event.end.oom_killed) || (failed_ && HasFailed(event));
}

}  // namespace tributary
