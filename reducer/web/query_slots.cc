#include "reducer/web/query_slots.h"

#include <algorithm>
#include <chrono>

namespace tributary {
namespace {

constexpr int64_t kLookMs = 50;  // between two looks at whether the query is cancelled

}  // namespace

QuerySlots::QuerySlots(const Options& options, Metrics& metrics)
    : options_{.running_max = std::max<size_t>(options.running_max, 1),
               .waiting_max = options.waiting_max,
               .wait_ms = options.wait_ms},
      running_count_(metrics.AddGauge("tributary_query_running", "Queries that are running.")),
      waiting_count_(metrics.AddGauge("tributary_query_waiting", "Queries that wait for other queries to end.")) {}

bool QuerySlots::Acquire(absl::FunctionRef<bool()> is_cancelled) {
  if (is_cancelled()) return false;
  std::unique_lock lock(mutex_);
  if (running_ < options_.running_max) {  // then no query waits: Release passes slots on
    ++running_;
    running_count_.Add(1);
    return true;
  }
  if (waiting_.size() >= options_.waiting_max) return false;
  Waiter waiter;
  const auto place = waiting_.insert(waiting_.end(), &waiter);
  waiting_count_.Add(1);
  for (int64_t left_ms = options_.wait_ms; left_ms > 0 && !is_cancelled(); left_ms -= kLookMs) {
    const std::chrono::milliseconds look(std::min(left_ms, kLookMs));
    if (waiter.turn.wait_for(lock, look, [&waiter] { return waiter.has_slot; })) return true;
  }
  waiting_.erase(place);
  waiting_count_.Add(-1);
  return false;
}

void QuerySlots::Release() {
  const std::lock_guard lock(mutex_);
  if (waiting_.empty()) {
    --running_;
    running_count_.Add(-1);
    return;
  }
  Waiter* const next = waiting_.front();
  waiting_.pop_front();
  waiting_count_.Add(-1);
  next->has_slot = true;
  next->turn.notify_one();  // under the lock, because the waiter is gone soon after
}

}  // namespace tributary
