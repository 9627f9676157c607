#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reducer/query/event_windows.h"

namespace tributary {

// Defines a total order of process events: by time, then by a digest of all fields. Only equal events have equal keys.
// Two different events with equal keys are so unlikely that a page may then skip or repeat one of them.
struct EventKey {
  UnixNs time;
  uint64_t digest = 0;

  static EventKey Of(const store::ProcessEventRow& event);
  friend auto operator<=>(const EventKey&, const EventKey&) = default;
};
inline bool IsBefore(EventOrder order, const EventKey& a, const EventKey& b) {
  return order == EventOrder::kNewestFirst ? a > b : a < b;
}

// The position after an event in a list of events. It does not depend on events that are stored later, and stays valid
// if the reducer is restarted.
struct EventCursor {
  EventOrder order = EventOrder::kNewestFirst;
  EventKey key;       // of the event before this position
  uint64_t same = 1;  // events with this key before this position

  std::string ToString() const;
  // InvalidArgument: ToString has not made this text, or has made it for another order.
  static absl::StatusOr<EventCursor> Parse(std::string_view text, EventOrder order);
};

}  // namespace tributary
