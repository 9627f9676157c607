#include "kernel-collector/events/event_tracker.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "kernel-collector/events/cpu_times.h"

namespace tributary {
namespace {

constexpr uint64_t kInt64Max = std::numeric_limits<int64_t>::max();
constexpr uint32_t kPidMax = std::numeric_limits<int32_t>::max();

bool IsPossible(const trib_process_event& record) {
  const bool has_event =
      record.kind == TRIB_EVENT_START || record.kind == TRIB_EVENT_EXEC || record.kind == TRIB_EVENT_EXIT;
  return has_event && record.pid != 0 && record.pid <= kPidMax && record.start_time_ns <= kInt64Max &&
         record.time_ns <= kInt64Max;
}

std::string_view CommOf(const trib_process_event& record) {
  return {record.comm, strnlen(record.comm, sizeof(record.comm))};
}

CpuTimes CpuTimesOf(const trib_process_event& record) {
  return SplitRuntime({.user_ns = record.user_ns, .system_ns = record.system_ns}, record.runtime_ns);
}

// The status is as in wait(2).
ProcessEnd EndOf(const trib_process_event& record) {
  const CpuTimes cpu = CpuTimesOf(record);
  ProcessEnd end;
  end.signal = record.exit_status & 0x7f;
  end.core_dumped = (record.exit_status & 0x80) != 0;
  if (end.signal == 0) end.exit_code = record.exit_status >> 8 & 0xff;
  end.oom_killed = (record.flags & TRIB_EVENT_OOM) != 0;
  end.user_ns = cpu.user_ns;
  end.system_ns = cpu.system_ns;
  return end;
}

}  // namespace

EventTracker::EventTracker(const Options& options, MonotonicNs now)
    : options_(options),
      queue_({.events_per_second = options.events_per_second,
              .bytes_max = options.queue_bytes_max,
              .sums_max = options.sums_max},
             now),
      live_texts_(kLiveTextBytesMax) {}

void EventTracker::OnRecord(const trib_process_event& record, const EventNames& names, MonotonicNs now) {
  StopWaiting(now);
  const ProcessIdentity process{Pid{static_cast<int32_t>(record.pid)}, static_cast<int64_t>(record.start_time_ns)};
  if (record.kind == TRIB_EVENT_FINAL) {
    OnFinal(record, process);
    return;
  }
  TrackedEvent event{.time = MonotonicNs{static_cast<int64_t>(record.time_ns)},
                     .process = process,
                     .parent = Pid{record.parent <= kPidMax ? static_cast<int32_t>(record.parent) : 0},
                     .uid = record.uid,
                     .name = CommOf(record),
                     .names = names};
  if (!IsPossible(record) || IsRepeatedOrLate(record.kind, process)) {
    ++records_refused_;
    queue_.Refuse();
    return;
  }
  if (record.kind == TRIB_EVENT_EXIT) {
    event.end = EndOf(record);
    OnExit(record, event, now);
    return;
  }
  event.kind = record.kind == TRIB_EVENT_START ? ProcessEventKind::kStart : ProcessEventKind::kExec;
  Live* live = ended_.Contains(process) ? nullptr : Follow(process, event.time);
  if (live != nullptr) {
    if (event.kind == ProcessEventKind::kStart) live->start = event.time;
    Remember(*live, {process, event.parent, event.uid, event.name, names});
  }
  queue_.Add(event);
}

// After the exit of a process, its start or exec is still in time if the exit has not been sent.
bool EventTracker::IsRepeatedOrLate(uint32_t kind, const ProcessIdentity& process) const {
  if (ended_.Contains(process)) return kind == TRIB_EVENT_EXIT || !queue_.HasEnding(process);
  const auto found = live_.find(process);
  return kind == TRIB_EVENT_START && found != live_.end() && found->second.start;
}

// Returns the live process, or nullptr if there are too many. A record shows that a restored process has run since.
EventTracker::Live* EventTracker::Follow(const ProcessIdentity& process, MonotonicNs time) {
  auto found = live_.find(process);
  if (found == live_.end()) {
    if (live_.size() >= options_.live_max) {
      ++live_refused_;
      return nullptr;
    }
    found = live_.emplace(process, Live{}).first;
  }
  found->second.last_record = std::max(found->second.last_record, time);
  found->second.is_restored = false;
  return &found->second;
}

// The path changes with every exec, also to an unknown path. The container and the cgroup rarely change.
void EventTracker::Remember(Live& live, const RunningProcess& latest) {
  const Texts old = live.texts;
  const EventNames known = live_texts_.Names(old), &names = latest.names;
  live.parent = latest.parent;
  live.uid = latest.uid;
  live.texts = live_texts_.Take(latest.name,
                                {.executable_path = names.executable_path,
                                 .container_id = names.container_id.empty() ? known.container_id : names.container_id,
                                 .cgroup_path = names.cgroup_path.empty() ? known.cgroup_path : names.cgroup_path});
  live_texts_.Release(old);
}

void EventTracker::Forget(const ProcessIdentity& process) {
  const auto found = live_.find(process);
  if (found == live_.end()) return;
  live_texts_.Release(found->second.texts);
  live_.erase(found);
}

void EventTracker::OnExit(const trib_process_event& record, TrackedEvent& event, MonotonicNs now) {
  const auto found = live_.find(event.process);
  const Live* live = found == live_.end() ? nullptr : &found->second;
  event.kind = ProcessEventKind::kExit;
  event.end.run_ns = RunTime(event, live);
  event.end.peak_rss_bytes = PeakBytes(record);
  if (live != nullptr) {
    const EventNames known = live_texts_.Names(live->texts);
    EventNames& names = event.names;
    if (names.executable_path.empty()) names.executable_path = known.executable_path;
    if (names.container_id.empty()) names.container_id = known.container_id;
    if (names.cgroup_path.empty()) names.cgroup_path = known.cgroup_path;
  }
  const bool waits = !queue_.is_over_half();
  queue_.Add(event, waits);
  if (waits) waiting_.push_back({event.process, MonotonicNs{now.value + kFinalWaitNs}});
  Forget(event.process);
  ended_.Add(event.process);
}

void EventTracker::OnFinal(const trib_process_event& record, const ProcessIdentity& process) {
  const bool completed = queue_.Complete(process, {.cpu = CpuTimesOf(record), .peak_rss_bytes = PeakBytes(record)});
  ++(completed ? finals_ : finals_ignored_);
}

uint64_t EventTracker::PeakBytes(const trib_process_event& record) const {
  const uint64_t pages = record.peak_rss_pages;
  return std::min(pages, std::numeric_limits<uint64_t>::max() / options_.page_bytes) * options_.page_bytes;
}

// From the start event if it was seen, else from the start time in the identity, which has another clock.
uint64_t EventTracker::RunTime(const TrackedEvent& exit, const Live* live) const {
  int64_t start = 0;
  if (live != nullptr && live->start) {
    start = live->start->value;
  } else if (!clock_offset_ns_ || __builtin_sub_overflow(exit.process.start_time_ns, *clock_offset_ns_, &start)) {
    return 0;
  }
  int64_t run_ns = 0;
  if (__builtin_sub_overflow(exit.time.value, start, &run_ns)) return 0;
  return static_cast<uint64_t>(std::max<int64_t>(run_ns, 0));
}

void EventTracker::StopWaiting(MonotonicNs now) {
  const bool is_full = queue_.is_over_half();
  while (!waiting_.empty()) {
    const Waiting& oldest = waiting_.front();
    if (!is_full && waiting_.size() <= kWaitingMax && now < oldest.until && queue_.IsOpen(oldest.process)) return;
    queue_.Close(oldest.process);
    waiting_.pop_front();
  }
}

size_t EventTracker::AddRunning(const RunningProcess& running, MonotonicNs seen_at) {
  if (ended_.Contains(running.process)) return 0;
  const auto found = live_.find(running.process);
  const bool is_known = found != live_.end() && !found->second.is_restored;
  Live* live = Follow(running.process, seen_at);
  if (live != nullptr && (!is_known || !running.names.executable_path.empty())) Remember(*live, running);
  if (is_known) return 0;
  queue_.Add({.time = seen_at,
              .kind = ProcessEventKind::kSeenRunning,
              .process = running.process,
              .parent = running.parent,
              .uid = running.uid,
              .name = running.name,
              .names = running.names});
  return 1;
}

void EventTracker::Restore(std::span<const RunningProcess> processes) {
  for (const RunningProcess& earlier : processes) {
    Live* live = Follow(earlier.process, MonotonicNs{});
    if (live == nullptr) continue;
    Remember(*live, earlier);
    live->is_announced = live->is_restored = true;
  }
}

EventTracker::RunningProcess EventTracker::Find(const ProcessIdentity& process) const {
  const auto found = live_.find(process);
  if (found == live_.end()) return {.process = process};
  const Live& live = found->second;
  return {process, live.parent, live.uid, live_texts_.Text(live.texts.name), live_texts_.Names(live.texts)};
}

size_t EventTracker::EndRestore(MonotonicNs now) {
  std::vector<ProcessIdentity> missing;
  for (const auto& [process, live] : live_) {
    if (live.is_restored) missing.push_back(process);
  }
  std::sort(missing.begin(), missing.end());
  for (const ProcessIdentity& process : missing) {
    const RunningProcess earlier = Find(process);
    queue_.Add({.time = now,
                .kind = ProcessEventKind::kEndUnknown,
                .process = process,
                .parent = earlier.parent,
                .uid = earlier.uid,
                .name = earlier.name,
                .names = earlier.names});
    Forget(process);
    ended_.Add(process);
  }
  return missing.size();
}

size_t EventTracker::ForgetMissing(std::span<const Pid> running, MonotonicNs read_at) {
  // Of several live processes with one pid, only the newest can run.
  absl::flat_hash_map<Pid, int64_t> newest;
  for (const Pid pid : running) newest.emplace(pid, std::numeric_limits<int64_t>::min());
  for (const auto& [process, live] : live_) {
    if (const auto found = newest.find(process.pid); found != newest.end()) {
      found->second = std::max(found->second, process.start_time_ns);
    }
  }
  std::vector<ProcessIdentity> missing;
  for (const auto& [process, live] : live_) {
    if (live.last_record.value >= read_at.value - kMissingGraceNs) continue;
    const auto found = newest.find(process.pid);
    if (found == newest.end() || found->second != process.start_time_ns) missing.push_back(process);
  }
  for (const ProcessIdentity& process : missing) Forget(process);
  return missing.size();
}

TrackedEventVisitor EventTracker::Announce(const TrackedEventVisitor& visit) {
  return [this, &visit](const TrackedEvent& event) {
    if (const auto found = live_.find(event.process); found != live_.end()) found->second.is_announced = true;
    visit(event);
  };
}

void EventTracker::TakeForBatch(MonotonicNs now, size_t max, const TrackedEventVisitor& visit) {
  StopWaiting(now);
  queue_.Take(now, max, Announce(visit));
}

void EventTracker::FinishAll(MonotonicNs now, const TrackedEventVisitor& visit) {
  for (const Waiting& exit : waiting_) queue_.Close(exit.process);
  waiting_.clear();
  queue_.TakeAll(now, Announce(visit));
}

EventTracker::Counts EventTracker::counts() const {
  return {.events = queue_.counts(),
          .live_refused = live_refused_,
          .sums_refused = queue_.sums_refused(),
          .records_refused = records_refused_,
          .finals = finals_,
          .finals_ignored = finals_ignored_,
          .names_refused = live_texts_.refused()};
}

}  // namespace tributary
