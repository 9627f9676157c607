#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/statusor.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns true if the event is an exit, or a sum of exits, by a signal that IsCrashSignal accepts.
bool IsCrash(const store::ProcessEventRow& event);
// Returns true if the event is an exit, or a sum of exits, with an exit code other than 0 or by any signal.
bool HasFailed(const store::ProcessEventRow& event);

// Chooses process events by kind. Besides the kinds of process_event.h, there are groups of events: crash, failed, oom
// (the OOM killer ended the process), and restart (restart_finder.h).
class EventKinds {
 public:
  // Parses a list such as "exit,crash". An empty text chooses all events. InvalidArgument: a kind does not exist.
  static absl::StatusOr<EventKinds> Parse(std::string_view text);

  // Returns true if the event is of a chosen kind, or in a chosen group other than restart.
  bool Has(const store::ProcessEventRow& event) const;
  // Returns true if restarts are chosen. A single event does not show whether it is a restart.
  bool has_restarts() const { return restart_; }

 private:
  uint32_t kinds_ = ~0u;  // bit ProcessEventKind
  bool crash_ = false, oom_ = false, failed_ = false, restart_ = false;
};

}  // namespace tributary
