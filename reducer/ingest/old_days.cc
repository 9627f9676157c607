#include "reducer/ingest/old_days.h"

#include <algorithm>
#include <limits>

#include "base/status.h"
#include "reducer/store/store_times.h"

namespace tributary::ingest {
namespace {

using store::Day;

constexpr int64_t kUsedNs = 60 * kNsPerMinute;

void Add(Day day, std::vector<Day>& days) {
  if (std::find(days.begin(), days.end(), day) == days.end()) days.push_back(day);
}

}  // namespace

OldDays::Days OldDays::DaysOf(const RowBatch& batch, UnixNs unix_now) const {
  Days days;
  if (batch.samples.empty() && batch.events.empty()) return days;
  const store::SampleTimes times(batch.clock, unix_now.value);
  const store::AgeRules rules(options_.ages, unix_now, std::numeric_limits<int64_t>::max());
  // Just before midnight, the next day may be in use already. Then yesterday needs a turn, too.
  const Day yesterday{store::DayOf(UnixNs{unix_now.value + store::kFutureMaxNs}).value - 1};
  const auto is_late = [&](UnixNs time) { return rules.IsOld(time) || store::DayOf(time) < yesterday; };
  // Almost all batches end here: neither their first time is late, nor the time that replaces impossible times.
  MonotonicNs first{std::numeric_limits<int64_t>::max()};
  for (const Sample& sample : batch.samples) first = std::min(first, sample.time);
  for (const ProcessEvent& event : batch.events) first = std::min(first, event.time);
  bool clamped = false;
  const UnixNs first_time{times.ToUnixNs(first, &clamped)};
  if (!clamped && !is_late(first_time) && !is_late(times.batch_time())) return days;

  for (const Sample& sample : batch.samples) {
    const UnixNs time{times.ToUnixNs(sample.time, &clamped)};
    const store::SamplePlace place = rules.PlaceOf(time);
    if (place == store::SamplePlace::kTooOld) continue;
    const Day day = store::DayOf(time);
    if (place == store::SamplePlace::kSumsOnly) Add(day, days.old);
    if (day < yesterday) Add(day, days.before_yesterday);
  }
  for (const ProcessEvent& event : batch.events) {
    const UnixNs time{times.ToUnixNs(event.time, &clamped)};
    if (rules.IsOld(time) && rules.TakesEvent(time)) Add(store::DayOf(time), days.old);
  }
  return days;
}

int64_t OldDays::Take(std::string_view node_id, const RowBatch& batch, UnixNs unix_now, MonotonicNs now) {
  Days days = DaysOf(batch, unix_now);
  if (options_.node_days_max == 0) days.old.clear();
  if (!days.old.empty()) {
    const auto known = nodes_.find(ToAbsl(node_id));
    const int64_t wait_ns = known != nodes_.end() ? WaitOfNode(*known->second, days.old, now) : 0;
    if (wait_ns > 0) return wait_ns;
  }
  if (const int64_t wait_ns = turns_.Take(days.before_yesterday, now); wait_ns > 0) return wait_ns;
  if (days.old.empty()) return 0;
  std::vector<Use>& uses = FindOrAdd(node_id, now).uses;
  for (const Day day : days.old) {
    const auto use = std::find_if(uses.begin(), uses.end(), [&](const Use& each) { return each.day == day; });
    if (use == uses.end()) {
      uses.push_back({day, now});
    } else {
      use->last = now;
    }
  }
  return 0;
}

int64_t OldDays::WaitOfNode(Node& node, const std::vector<Day>& days, MonotonicNs now) const {
  std::vector<Use>& uses = node.uses;
  std::erase_if(uses, [&](const Use& use) { return use.last.value + kUsedNs <= now.value; });
  size_t more = 0;
  for (const Day day : days) {
    if (std::none_of(uses.begin(), uses.end(), [&](const Use& use) { return use.day == day; })) ++more;
  }
  if (more == 0 || uses.empty() || uses.size() + more <= options_.node_days_max) return 0;
  // Waits until so many of the days are no longer used that the new ones fit, or until none is used.
  std::sort(uses.begin(), uses.end(), [](const Use& a, const Use& b) { return a.last < b.last; });
  const size_t must_end = std::min(uses.size() + more - options_.node_days_max, uses.size());
  return uses[must_end - 1].last.value + kUsedNs - now.value;
}

// Also forgets the nodes that use no day any more.
OldDays::Node& OldDays::FindOrAdd(std::string_view node_id, MonotonicNs now) {
  if (const auto known = nodes_.find(ToAbsl(node_id)); known != nodes_.end()) {
    recent_.splice(recent_.begin(), recent_, known->second);
  } else {
    recent_.push_front({.id = std::string(node_id)});
    nodes_.emplace(recent_.front().id, recent_.begin());
  }
  recent_.front().last_use = now;
  while (recent_.size() > std::max<size_t>(options_.nodes_max, 1) ||
         recent_.back().last_use.value + kUsedNs <= now.value) {
    nodes_.erase(recent_.back().id);
    recent_.pop_back();
  }
  return recent_.front();
}

}  // namespace tributary::ingest
