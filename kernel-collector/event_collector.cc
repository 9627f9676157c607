#include "kernel-collector/event_collector.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tributary {
namespace {

std::string_view TextOf(const char* text, size_t bytes_max) { return {text, strnlen(text, bytes_max)}; }

ProcessIdentity IdentityOf(const trib_process_event& event) {
  return {Pid{static_cast<int32_t>(event.pid)}, static_cast<int64_t>(event.start_time_ns)};
}

LiveProcesses::Key KeyOf(const ProcessIdentity& process) {
  return {static_cast<uint32_t>(process.pid.value), static_cast<uint64_t>(process.start_time_ns)};
}

// The kind of a record that follows the list of running processes.
constexpr uint32_t kEndOfList = TRIB_EVENT_RUNNING + 1;

// The final record completes an exit, which has the names.
bool HasNames(const trib_process_event& event) { return event.kind != TRIB_EVENT_FINAL && event.kind != kEndOfList; }

template <size_t kBytes>
void SetText(std::string_view text, char (&to)[kBytes]) {
  std::memcpy(to, text.data(), std::min(text.size(), kBytes));
}

trib_live_process Describe(const EventTracker::RunningProcess& running) {
  trib_live_process process = {};
  process.parent = static_cast<uint32_t>(running.parent.value);
  process.uid = running.uid;
  SetText(running.name, process.comm);
  SetText(running.names.container_id, process.container_id);
  // The end of a path says more than its beginning.
  std::string_view path = running.names.executable_path;
  path.remove_prefix(path.size() - std::min(path.size(), sizeof(process.path)));
  SetText(path, process.path);
  return process;
}

int64_t NowOf(clockid_t id) {
  timespec now = {};
  clock_gettime(id, &now);
  return now.tv_sec * kNsPerSecond + now.tv_nsec;
}

}  // namespace

EventCollector::EventCollector(Options options, Probes& probes, ProcessTable& processes, CgroupNames& cgroups,
                               const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      probes_(probes),
      processes_(processes),
      cgroups_(cgroups),
      clock_(clock),
      tracker_({.events_per_second = options_.events_per_second, .page_bytes = static_cast<uint64_t>(getpagesize())},
               clock.Monotonic()),
      metrics_(metrics) {
  UpdateClockOffset();
  Restore();
}

EventCollector::FlowMetrics::FlowMetrics(Metrics& metrics)
    : sent(metrics.AddCounter("tributary_collector_sent_process_events_total",
                              "Process events that were put into batches as records of their own")),
      summed(metrics.AddCounter(
          "tributary_collector_summed_process_events_total",
          "Process events that were put into batches in sums, because there were more than --event-budget allows")),
      overflow(metrics.AddCounter("tributary_collector_lost_process_events_total", "Process events lost, by reason",
                                  {{"reason", std::string(LossReasonName(LossReason::kEventOverflow))}})),
      opted_out(metrics.AddCounter("tributary_collector_lost_process_events_total", "Process events lost, by reason",
                                   {{"reason", std::string(LossReasonName(LossReason::kOptedOut))}})),
      untracked(metrics.AddCounter("tributary_collector_untracked_processes_total",
                                   "Starts and execs of processes that were not followed to their end, because the "
                                   "collector already followed too many processes; the events are sent")) {}

void EventCollector::FlowMetrics::Set(const EventTracker::Counts& now, const EventCounts& dropped) {
  const uint64_t dropped_sent = dropped.sent - dropped_before.sent,
                 dropped_summed = dropped.summed - dropped_before.summed;
  sent.Add(now.events.sent - before.events.sent - dropped_sent);
  summed.Add(now.events.summed - before.events.summed - dropped_summed);
  opted_out.Add(dropped_sent + dropped_summed);
  dropped_before = dropped;
  overflow.Add(now.events.lost - before.events.lost);
  untracked.Add(now.live_refused - before.live_refused);
  before = now;
}

// CLOCK_BOOTTIME also counts the time in which the machine sleeps.
void EventCollector::UpdateClockOffset() { tracker_.SetClockOffset(NowOf(CLOCK_BOOTTIME) - NowOf(CLOCK_MONOTONIC)); }

void EventCollector::Restore() {
  std::vector<EventTracker::RunningProcess> earlier;
  const LiveProcesses::Table table = probes_.live_processes().TakeEarlier();
  for (const auto& [key, process] : table) {
    earlier.push_back({.process = {Pid{static_cast<int32_t>(key.pid)}, static_cast<int64_t>(key.start_time_ns)},
                       .parent = Pid{static_cast<int32_t>(process.parent)},
                       .uid = process.uid,
                       .name = TextOf(process.comm, sizeof(process.comm)),
                       .names = {.executable_path = TextOf(process.path, sizeof(process.path)),
                                 .container_id = TextOf(process.container_id, sizeof(process.container_id))}});
  }
  tracker_.Restore(earlier);
}

void EventCollector::ReportRunning(const std::function<void()>& drain) {
  if (options_.events_per_second == 0) return;
  std::vector<trib_process_event> running;
  const bool is_complete =
      probes_.ListProcesses([&running](const trib_process_event& event) { running.push_back(event); });
  // A process that started or ended while the list was read has records of its own. They must come first.
  drain();
  for (const trib_process_event& event : running) Take(event);
  if (!is_complete) return;  // a process that is not in the list may still run
  trib_process_event end = {};
  end.kind = kEndOfList;
  Take(end);
}

bool EventCollector::FindCgroup(const trib_process_event& event, Cgroup* cgroup) {
  if (!HasNames(event)) return true;
  const CgroupName* name =
      cgroups_.Find({event.cgroup_v2_id, event.cgroup_v1_id}, Pid{static_cast<int32_t>(event.pid)});
  if (name == nullptr) return false;
  *cgroup = {name->path, name->container_id};
  if (options_.on_container && !name->container_id.empty()) options_.on_container(name->container_id);
  return true;
}

// The path of a stale run may be that of the program before an exec. A run that began after the event is that of a
// later exec: the event's record was not yet complete when the ring was read, and the sideband was read after the ring.
std::string EventCollector::ExecutablePath(const trib_process_event& event) const {
  const ProcessIdentity process = IdentityOf(event);
  const ProcessRunPtr run = processes_.ForEvent(process.pid, process.start_time_ns);
  const bool is_known = run != nullptr && !run->stale && run->began.value <= static_cast<int64_t>(event.time_ns);
  return is_known ? run->executable_path : std::string();
}

void EventCollector::Take(const trib_process_event& event) {
  Held held{.event = event,
            .executable_path = HasNames(event) ? ExecutablePath(event) : std::string(),
            .until = MonotonicNs{clock_.Monotonic().value + options_.hold_ns}};
  // Also requests the name. Otherwise the cgroups of the held events would be read one after another.
  Cgroup cgroup;
  const bool is_known = FindCgroup(event, &cgroup);
  if (held_.empty() && is_known) return Track(held, cgroup);
  held_bytes_ += held.executable_path.size();
  held_.push_back(std::move(held));
  if (HoldsTooMuch()) Poll();
}

void EventCollector::Poll() {
  const MonotonicNs now = clock_.Monotonic();
  for (; !held_.empty(); held_.pop_front()) {
    const Held& oldest = held_.front();
    Cgroup cgroup;
    const bool is_known = FindCgroup(oldest.event, &cgroup);
    if (!is_known && now < oldest.until && !HoldsTooMuch() && !finished_) return;
    Track(oldest, cgroup);
    held_bytes_ -= oldest.executable_path.size();
  }
}

void EventCollector::Track(const Held& held, const Cgroup& cgroup) {
  const MonotonicNs now = clock_.Monotonic();
  const trib_process_event& event = held.event;
  const EventNames names{
      .executable_path = held.executable_path, .container_id = cgroup.container_id, .cgroup_path = cgroup.path};
  if (event.kind == TRIB_EVENT_RUNNING || event.kind == TRIB_EVENT_EXEC) {
    probes_.live_processes().Redescribe(KeyOf(IdentityOf(event)));
  }
  if (event.kind == TRIB_EVENT_RUNNING) {
    probes_.AddEventsMade(tracker_.AddRunning({.process = IdentityOf(event),
                                               .parent = Pid{static_cast<int32_t>(event.parent)},
                                               .uid = event.uid,
                                               .name = TextOf(event.comm, sizeof(event.comm)),
                                               .names = names},
                                              MonotonicNs{static_cast<int64_t>(event.time_ns)}));
  } else if (event.kind == kEndOfList) {
    probes_.AddEventsMade(tracker_.EndRestore(now));
  } else {
    tracker_.OnRecord(event, names, now);
  }
}

void EventCollector::Flush(const TrackedEventVisitor& visit) {
  if (options_.events_per_second == 0) return;
  const MonotonicNs now = clock_.Monotonic();
  UpdateClockOffset();
  if (finished_) {
    tracker_.FinishAll(now, visit);
  } else {
    tracker_.TakeForBatch(now, kProcessEventsPerBatchMax, visit);
  }
  metrics_.Set(tracker_.counts(), opted_out_);
  SaveLive();
}

// The tracker follows these processes like all others: they may be sampled again before they end.
bool EventCollector::DropsOptedOut(const TrackedEvent& event) {
  if (opt_outs_.empty() || !opt_outs_.contains(ToAbsl(event.names.container_id))) return false;
  (event.kind == ProcessEventKind::kSum ? opted_out_.summed : opted_out_.sent) += event.events;
  return true;
}

void EventCollector::SaveLive() {
  LiveProcesses::Keys live;
  tracker_.ForEachLive([&live](const ProcessIdentity& process, bool is_announced) {
    if (is_announced) live.insert(KeyOf(process));
  });
  probes_.live_processes().Set(live, [this](const LiveProcesses::Key& key) {
    return Describe(tracker_.Find({Pid{static_cast<int32_t>(key.pid)}, static_cast<int64_t>(key.start_time_ns)}));
  });
}

void EventCollector::Finish() {
  finished_ = true;
  Poll();
}

}  // namespace tributary
