#include "kernel-collector/direct/request_pauses.h"

#include <algorithm>

namespace tributary {
namespace {

// NotFound: no process that maps the file is running, perhaps only now.
bool MayBeOverSoon(absl::StatusCode why) {
  return why == absl::StatusCode::kInternal || why == absl::StatusCode::kResourceExhausted ||
         why == absl::StatusCode::kUnavailable || why == absl::StatusCode::kNotFound;
}

}  // namespace

RequestPauses::Id& RequestPauses::Touch(const ExecutableId& id) {
  if (const auto it = ids_.find(id); it != ids_.end()) {
    order_.splice(order_.end(), order_, it->second.place);
    return it->second;
  }
  if (ids_.size() >= kIdsMax) {
    ids_.erase(order_.front());
    order_.pop_front();
  }
  Id& added = ids_[id];
  added.place = order_.insert(order_.end(), id);
  return added;
}

bool RequestPauses::IsPaused(const ExecutableId& id, MonotonicNs now) const {
  const auto it = ids_.find(id);
  return it != ids_.end() && now < it->second.until;
}

void RequestPauses::OnFailure(const ExecutableId& id, absl::StatusCode why, MonotonicNs now) {
  Id& of = Touch(id);
  int64_t pause_ns = kFailureMaxNs;
  if (MayBeOverSoon(why)) {
    constexpr uint32_t kDoublingsMax = 16;  // far above kFailureMaxNs
    pause_ns = std::min(kFailureMinNs << std::min(of.failures, kDoublingsMax), kFailureMaxNs);
    ++of.failures;
  }
  of.until.value = now.value + pause_ns;
}

void RequestPauses::OnAdded(const ExecutableId& id, MonotonicNs now) {
  Id& of = Touch(id);
  of.added = now;
  of.failures = 0;
}

void RequestPauses::OnDropped(const ExecutableId& id, MonotonicNs now) {
  Id& of = Touch(id);
  if (now.value - of.added.value >= kCalmNs) of.drops = 0;
  of.until.value = now.value + kDroppedNs[std::min<size_t>(of.drops, kDroppedNs.size() - 1)];
  ++of.drops;
}

}  // namespace tributary
