#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "bpf/include/process_events.h"
#include "kernel-collector/events/event_queue.h"
#include "kernel-collector/events/recently_ended.h"
#include "kernel-collector/events/text_table.h"
#include "kernel-collector/events/tracked_event.h"

namespace tributary {

// Makes process events from the kernel's records, and passes them on at the pace of a budget (EventQueue).
//
// It follows every process from its first record to its exit. A process is identified by pid and start time. So records
// may arrive out of order, starts and exits may be missing, and pids may be reused at once: a record is never counted
// for another process. An exit waits for the record of the process's final CPU times (TRIB_EVENT_FINAL), for at most
// kFinalWaitNs, and only while the queue is at most half full.
//
// At start-up, the caller attaches the BPF programs, then calls Restore with the processes that an earlier collector
// followed (if there was one), passes the records that have arrived, calls AddRunning for each running process, and
// then EndRestore. The number of followed processes is limited: processes above `live_max` are not followed, but their
// events are sent.
//
// Every event is sent, summed up or lost: see EventCounts. The records of the kernel and the events that AddRunning and
// EndRestore report count as seen. The caller must count the latter as captured. Loop thread only. `now` must not run
// backwards.
class EventTracker {
 public:
  static constexpr int64_t kFinalWaitNs = 2 * kNsPerSecond;
  static constexpr size_t kWaitingMax = 65'536;          // exits that wait; above it, the oldest stops waiting
  static constexpr size_t kLiveTextBytesMax = 8u << 20;  // of the names of live processes; above it, they have none
  static constexpr int64_t kMissingGraceNs = 10 * kNsPerSecond;

  struct Options {
    uint32_t events_per_second = 200;
    size_t live_max = 262'144;  // about 100 bytes each
    size_t queue_bytes_max = 2u << 20;
    size_t sums_max = 1024;
    uint64_t page_bytes = 4096;
  };
  EventTracker(const Options& options, MonotonicNs now);

  // Sets CLOCK_BOOTTIME minus CLOCK_MONOTONIC. It grows while the machine sleeps. It is used for the run time of
  // processes whose start was not seen. Without it, their run time is unknown (0).
  void SetClockOffset(int64_t boottime_minus_monotonic_ns) { clock_offset_ns_ = boottime_minus_monotonic_ns; }

  // Handles one record of the kernel. `names` are the names of exactly this process (pid and start time) at the time of
  // the record. Names that are empty in the record of an exit are taken from the process's earlier records. A record
  // that arrives after the exit of its process was sent, a second record of the same start or exit, and a record with
  // impossible numbers are lost events.
  void OnRecord(const trib_process_event& record, const EventNames& names, MonotonicNs now);

  struct RunningProcess {
    ProcessIdentity process;
    Pid parent;
    uint32_t uid = 0;
    std::string_view name;
    EventNames names;
  };
  // Adds a process that ran at `seen_at`. The process may have ended since. Returns the number of new events, 0 or 1.
  // There is no event if a record has shown the process already. A process that an earlier collector followed is
  // reported again: the present collector may send to another reducer.
  size_t AddRunning(const RunningProcess& running, MonotonicNs seen_at);

  // Adds the processes that an earlier collector followed and announced. Call it once, first.
  void Restore(std::span<const RunningProcess> processes);
  // Makes an event of kind kEndUnknown for each restored process that was not found running since. Returns the number
  // of events.
  size_t EndRestore(MonotonicNs now);

  // Forgets live processes that are not in `running`, the pids of all running processes at `read_at`: their exits were
  // lost in the kernel's ring. Keeps the processes with a record in the last kMissingGraceNs before `read_at`. Call it
  // after a loss, when all records that have arrived are passed. Returns the number of forgotten processes. O(live).
  size_t ForgetMissing(std::span<const Pid> running, MonotonicNs read_at);

  // Passes the events of one batch to `visit`, at most `max`, sorted by time. Call it at every flush. If it passes
  // `max` events, call it again for another batch.
  void TakeForBatch(MonotonicNs now, size_t max, const TrackedEventVisitor& visit);
  // For a stop: passes all events, whatever the budget, because they would be lost. Afterwards, no event waits.
  void FinishAll(MonotonicNs now, const TrackedEventVisitor& visit);

  // Calls `visit(process, is_announced)` for each live process, in no order. A process is announced if one of its
  // events was passed on, or if an earlier collector announced it. If it is not, the next collector should report it as
  // found running, so it must not be in the list for the next collector's Restore.
  template <typename Visitor>
  void ForEachLive(const Visitor& visit) const {
    for (const auto& [process, live] : live_) visit(process, live.is_announced);
  }
  // Returns what is known of a live process. Its texts are valid until the next call of another function.
  RunningProcess Find(const ProcessIdentity& process) const;
  size_t live() const { return live_.size(); }

  struct Counts {
    EventCounts events;
    uint64_t live_refused = 0;     // records of processes that are not followed, because there are `live_max`
    uint64_t sums_refused = 0;     // short processes that needed a new sum, when there were `sums_max`
    uint64_t records_refused = 0;  // late, repeated or impossible records
    uint64_t finals = 0;           // exits with their final CPU times
    uint64_t finals_ignored = 0;   // records of final CPU times that came too late
    uint64_t names_refused = 0;    // names that are not remembered, because of kLiveTextBytesMax
  };
  Counts counts() const;
  uint64_t waiting() const { return queue_.waiting(); }  // events in the queue
  size_t queue_bytes() const { return queue_.bytes(); }

 private:
  struct Live {
    std::optional<MonotonicNs> start;  // time of the start event
    MonotonicNs last_record;
    Texts texts;  // in live_texts_
    Pid parent;
    uint32_t uid = 0;
    bool is_announced = false;
    bool is_restored = false;  // and not yet seen running
  };
  struct Waiting {
    ProcessIdentity process;
    MonotonicNs until;
  };

  bool IsRepeatedOrLate(uint32_t kind, const ProcessIdentity& process) const;
  Live* Follow(const ProcessIdentity& process, MonotonicNs time);
  void Remember(Live& live, const RunningProcess& latest);
  void Forget(const ProcessIdentity& process);
  void OnExit(const trib_process_event& record, TrackedEvent& event, MonotonicNs now);
  void OnFinal(const trib_process_event& record, const ProcessIdentity& process);
  uint64_t PeakBytes(const trib_process_event& record) const;
  uint64_t RunTime(const TrackedEvent& exit, const Live* live) const;
  void StopWaiting(MonotonicNs now);
  TrackedEventVisitor Announce(const TrackedEventVisitor& visit);

  const Options options_;
  std::optional<int64_t> clock_offset_ns_;
  EventQueue queue_;
  TextTable live_texts_;
  absl::flat_hash_map<ProcessIdentity, Live> live_;
  RecentlyEnded ended_;
  std::deque<Waiting> waiting_;  // exits in order of `until`; some are complete already
  uint64_t live_refused_ = 0, records_refused_ = 0, finals_ = 0, finals_ignored_ = 0;
};

}  // namespace tributary
