#include "reducer/ingest/old_day_turns.h"

#include <algorithm>

#include "reducer/store/age_rules.h"

namespace tributary::ingest {

using store::Day;

bool OldDayTurns::Turn::Covers(Day from, Day to) const {
  return from >= first && int64_t{to.value} - first.value < store::kOldDaysAtOnce;
}

int64_t OldDayTurns::Take(std::span<const Day> days, MonotonicNs now) {
  if (turn_ns_ == 0 || days.empty()) return 0;
  Day from = *std::min_element(days.begin(), days.end());
  Day to = *std::max_element(days.begin(), days.end());
  const bool has_many_days = int64_t{to.value} - from.value >= store::kOldDaysAtOnce;
  if (has_many_days) from = to = kManyDays;
  const auto is_for_it = [&](const Turn& turn) { return turn.Covers(from, to); };
  const auto may_use = [&] { return is_for_it(turn_) && !used_up_; };
  Advance(now);
  if (!may_use()) {
    if (std::none_of(waiting_.begin(), waiting_.end(), is_for_it)) waiting_.push_back({from, now});
    Advance(now);
  }
  if (!may_use()) {
    const auto earlier_turns = std::find_if(waiting_.begin(), waiting_.end(), is_for_it) - waiting_.begin();
    return ends_.value + earlier_turns * turn_ns_ - now.value;
  }
  if (has_many_days) {
    used_up_ = true;
    const auto turns = (static_cast<int64_t>(days.size()) + store::kOldDaysAtOnce - 1) / store::kOldDaysAtOnce;
    ends_ = MonotonicNs{now.value + turns * turn_ns_};
  }
  return 0;
}

// Starts the turns that are due, even if the nodes that waited for them have gone.
void OldDayTurns::Advance(MonotonicNs now) {
  while (!waiting_.empty() && now >= ends_) {
    turn_ = waiting_.front();
    waiting_.pop_front();
    used_up_ = false;
    ends_ = MonotonicNs{std::max(ends_, turn_.waits_since).value + turn_ns_};
  }
}

}  // namespace tributary::ingest
