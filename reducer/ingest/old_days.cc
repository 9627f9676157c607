#include "reducer/ingest/old_days.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "reducer/store/store_times.h"

namespace tributary::ingest {
namespace {

using store::Day;

constexpr int64_t kUsedNs = 60 * kNsPerMinute;
constexpr int64_t kNoRoomWaitNs = kNsPerMinute;

}  // namespace

std::vector<Day> OldDays::DaysOf(const RowBatch& batch, UnixNs unix_now) const {
  std::vector<Day> days;
  if (batch.samples.empty() && batch.events.empty()) return days;
  const store::SampleTimes times(batch.clock, unix_now.value);
  const store::AgeRules rules(options_.ages, unix_now, std::numeric_limits<int64_t>::max());
  // Almost all batches end here: neither their first time is old, nor the time that replaces impossible times.
  MonotonicNs first{std::numeric_limits<int64_t>::max()};
  for (const Sample& sample : batch.samples) first = std::min(first, sample.time);
  for (const ProcessEvent& event : batch.events) first = std::min(first, event.time);
  bool clamped = false;
  const UnixNs first_time{times.ToUnixNs(first, &clamped)};
  if (!clamped && !rules.IsOld(first_time) && !rules.IsOld(times.batch_time())) return days;

  const auto add = [&](UnixNs time) {
    const Day day = store::DayOf(time);
    if (std::find(days.begin(), days.end(), day) == days.end()) days.push_back(day);
  };
  for (const Sample& sample : batch.samples) {
    const UnixNs time{times.ToUnixNs(sample.time, &clamped)};
    if (rules.PlaceOf(time) == store::SamplePlace::kSumsOnly) add(time);
  }
  for (const ProcessEvent& event : batch.events) {
    const UnixNs time{times.ToUnixNs(event.time, &clamped)};
    if (rules.IsOld(time) && rules.TakesEvent(time)) add(time);
  }
  return days;
}

int64_t OldDays::Take(std::string_view node_id, const RowBatch& batch, UnixNs unix_now, MonotonicNs now) {
  if (options_.node_days_max == 0) return 0;
  const std::vector<Day> days = DaysOf(batch, unix_now);
  if (days.empty()) return 0;
  auto node = nodes_.find(ToAbsl(node_id));
  if (node == nodes_.end()) {
    ForgetUnused(now);
    if (nodes_.size() >= options_.nodes_max) return kNoRoomWaitNs;
    node = nodes_.try_emplace(std::string(node_id)).first;
  }
  Uses& uses = node->second;
  std::erase_if(uses, [&](const Use& use) { return use.last.value + kUsedNs <= now.value; });
  size_t more = 0;
  for (const Day day : days) {
    if (std::none_of(uses.begin(), uses.end(), [&](const Use& use) { return use.day == day; })) ++more;
  }
  if (more != 0 && !uses.empty() && uses.size() + more > options_.node_days_max) {
    // Waits until so many of the days are no longer used that the new ones fit, or until none is used.
    std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.last < b.last; });
    const size_t must_end = std::min(uses.size() + more - options_.node_days_max, uses.size());
    return uses[must_end - 1].last.value + kUsedNs - now.value;
  }
  for (const Day day : days) {
    const auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& known) { return known.day == day; });
    if (use == uses.end()) {
      uses.push_back({day, now});
    } else {
      use->last = now;
    }
  }
  return 0;
}

// Walks over all nodes, but at most once a minute.
void OldDays::ForgetUnused(MonotonicNs now) {
  if (now < next_walk_) return;
  next_walk_ = MonotonicNs{now.value + kNsPerMinute};
  absl::erase_if(nodes_, [&](const auto& node) {
    return std::all_of(node.second.begin(), node.second.end(),
                       [&](const Use& use) { return use.last.value + kUsedNs <= now.value; });
  });
}

}  // namespace tributary::ingest
