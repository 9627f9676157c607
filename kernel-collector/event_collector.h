#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_set.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/events/event_tracker.h"
#include "kernel-collector/probes/probes.h"
#include "kernel-collector/processes/cgroup_names.h"
#include "kernel-collector/processes/process_table.h"
#include "kernel-collector/uplink/batcher.h"

namespace tributary {

// Adds the names to the kernel's process events, and passes the events to an EventTracker, which chooses the events of
// each batch within the event budget. The path of an executable comes from the process table. The container comes from
// the cgroup's name, for which an event may have to wait: then all later events wait behind it. Loop thread only.
class EventCollector {
 public:
  struct Options {
    uint32_t events_per_second = 200;                       // 0: no process events
    int64_t hold_ns = kNsPerSecond;                         // how long an event waits for the name of its cgroup
    size_t held_max = 16'384;                               // if more events wait, they no longer wait for names
    size_t held_bytes_max = 4u << 20;                       // the same limit for the bytes of their paths
    std::function<void(std::string_view id)> on_container;  // CoreOptions::on_container
  };
  EventCollector(Options options, Probes& probes, ProcessTable& processes, CgroupNames& cgroups, const Clock& clock,
                 Metrics& metrics);

  // Reports the processes that run now, and those that ended since an earlier collector last knew of them. Call it
  // once, when the process table knows the running processes. `drain` must pass all events that have arrived to Take.
  // It is called when the list of processes was read.
  void ReportRunning(const std::function<void()>& drain);
  // Takes one event. All events of the sideband from before it must have been passed to the process table.
  void Take(const trib_process_event& event);
  // Tries again to name the events that wait. Call it several times a second.
  void Poll();

  // Forgets processes that are not in `running`, the pids of all running processes at `read_at`. Call it after events
  // were lost.
  void ForgetMissing(std::span<const Pid> running, MonotonicNs read_at) { tracker_.ForgetMissing(running, read_at); }

  // Adds the events to the batch that the budget allows now. `accounting` is as for Batcher::Add.
  template <typename ReadAccounting>
  void AddTo(Batcher& batcher, ReadAccounting&& accounting) {
    Flush([&](const TrackedEvent& event) {
      if (!DropsOptedOut(event)) batcher.AddEvent(event, accounting);
    });
  }
  // Call it once, before the last AddTo: no event waits any more.
  void Finish();

  // The number of events lost because of the budget, LossReason::kEventOverflow.
  uint64_t lost() const { return tracker_.counts().events.lost; }

  // From now on, AddTo drops the events of these containers, also those that wait. Replaces the earlier containers.
  void SetOptOuts(absl::flat_hash_set<std::string> containers) { opt_outs_ = std::move(containers); }
  // The number of these events, LossReason::kOptedOut.
  uint64_t opted_out() const { return opted_out_.sent + opted_out_.summed; }

 private:
  struct Held {
    trib_process_event event;
    std::string executable_path;
    MonotonicNs until;
  };
  struct Cgroup {
    std::string_view path, container_id;
  };

  // Counters of sent, summed and lost events.
  struct FlowMetrics {
    explicit FlowMetrics(Metrics& metrics);
    // `now.events` counts the dropped events of opted-out containers as sent or summed, too.
    void Set(const EventTracker::Counts& now, const EventCounts& dropped);

    Counter &sent, &summed, &overflow, &opted_out, &untracked;
    EventTracker::Counts before;
    EventCounts dropped_before;
  };

  void Restore();
  // Returns false if the cgroup's name is not known yet.
  bool FindCgroup(const trib_process_event& event, Cgroup* cgroup);
  std::string ExecutablePath(const trib_process_event& event) const;
  void Track(const Held& held, const Cgroup& cgroup);
  void Flush(const TrackedEventVisitor& visit);
  void SaveLive();
  bool DropsOptedOut(const TrackedEvent& event);
  bool HoldsTooMuch() const { return held_.size() > options_.held_max || held_bytes_ > options_.held_bytes_max; }
  void UpdateClockOffset();

  const Options options_;
  Probes& probes_;
  ProcessTable& processes_;
  CgroupNames& cgroups_;
  const Clock& clock_;
  EventTracker tracker_;
  std::deque<Held> held_;
  size_t held_bytes_ = 0;  // of the paths in held_
  bool finished_ = false;
  absl::flat_hash_set<std::string> opt_outs_;  // ids of containers
  EventCounts opted_out_;                      // `sent` and `summed`: events that were dropped instead
  FlowMetrics metrics_;
};

}  // namespace tributary
