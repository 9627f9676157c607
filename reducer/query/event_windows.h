#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary {

enum class EventOrder { kNewestFirst, kOldestFirst };

// Cuts a time range into windows for reading process events, in the given order. A window is `slots` slots, which are
// the unit in which stores index events. Each window after an empty one is twice as long, so that a range of years
// without events needs few windows.
class EventWindows {
 public:
  EventWindows(store::TimeRange range, EventOrder order, int32_t slots = 1)
      : rest_(range), order_(order), slots_min_(slots), slots_(slots) {}

  // Returns the next window, or nullopt at the end of the range.
  std::optional<store::TimeRange> Next() {
    if (rest_.from >= rest_.to) return std::nullopt;
    store::TimeRange window = rest_;
    const int32_t first = store::SlotOf(rest_.from).value, last = store::SlotOf(UnixNs{rest_.to.value - 1}).value;
    if (last - first >= slots_) {
      if (order_ == EventOrder::kNewestFirst) {
        window.from = rest_.to = store::StartOf(store::Slot{last - slots_ + 1});
      } else {
        window.to = rest_.from = store::StartOf(store::Slot{first + slots_});
      }
    } else {
      rest_.from = rest_.to;
    }
    return window;
  }
  // Must be called after each window that Next has returned.
  void Finish(bool was_empty) { slots_ = was_empty ? std::min(slots_ * 2, kSlotsMax) : slots_min_; }

 private:
  static constexpr int32_t kSlotsMax = 1 << 24;  // 319 years

  store::TimeRange rest_;
  const EventOrder order_;
  const int32_t slots_min_;
  int32_t slots_;
};

}  // namespace tributary
