#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/types.h"
#include "kernel-collector/events/cpu_times.h"
#include "kernel-collector/events/event_budget.h"
#include "kernel-collector/events/process_sums.h"
#include "kernel-collector/events/slab.h"
#include "kernel-collector/events/text_table.h"
#include "kernel-collector/events/tracked_event.h"

namespace tributary {

// Numbers of events: seen = sent + summed + lost + waiting.
struct EventCounts {
  uint64_t seen = 0;
  uint64_t sent = 0;    // as a record of their own
  uint64_t summed = 0;  // in a sum that was sent
  uint64_t lost = 0;    // LossReason::kEventOverflow
  uint64_t sums = 0;    // records of sums that were sent
};

// The events that wait to be sent, within a limit of memory and a budget of records per second.
//
// A process is short if both its start and its exit are in the queue. If the queue or the budget is too small for all
// events, short processes are summed up (process_sums.h). Other events wait. If the queue is full, it makes room in
// this order: it sums up the short process that ended first; it drops the oldest exec; it drops the oldest other event;
// it drops the oldest sum. Dropped events count as lost.
//
// The budget is divided so that no kind of event can keep out the others. Short processes that are sent one by one
// leave a quarter of the bucket. If the tokens are too few for everything, these processes get a quarter of the tokens,
// and the sums and all other events get half of the rest each. If one kind needs less, the others get more.
//
// The events of a process are sent in this order: the start, then the execs by time, then the exit. So an exit is
// never before its start. Within one call of Take, the records are sorted by time, unless the times contradict this
// order.
//
// Add costs some hash lookups, and Take is O(n log n). An event has about 80 bytes, an exit 40 more, a process 100,
// plus its texts. Not thread-safe.
class EventQueue {
 public:
  struct Options {
    uint32_t events_per_second = 200;  // at most EventBudget::kEventsPerSecondMax
    size_t bytes_max = 2u << 20;
    size_t sums_max = 1024;
  };
  EventQueue(const Options& options, MonotonicNs now);
  EventQueue(const EventQueue&) = delete;
  EventQueue& operator=(const EventQueue&) = delete;

  // Adds an event, which must not be a sum. An `open` exit waits for Complete or Close. While it waits, no event of its
  // process is sent. If the process already has an event of this kind in the queue, and the kind can happen only once,
  // the new event counts as lost. If an exit is in the queue before its start, the start corrects the run time.
  void Add(const TrackedEvent& event, bool open = false);
  // Counts an event that is not added: it is seen and lost.
  void Refuse();

  bool HasEnding(const ProcessIdentity& process) const;
  bool IsOpen(const ProcessIdentity& process) const;
  // Sets the final data of an open exit, and closes it. Returns false if there is no such exit.
  struct Final {
    CpuTimes cpu;
    uint64_t peak_rss_bytes = 0;
  };
  bool Complete(const ProcessIdentity& process, const Final& final);
  void Close(const ProcessIdentity& process);

  // Passes the records that the budget allows to `visit`, at most `max`. If `max` is the limit, the other records wait
  // for the next call. `visit` must not call this object.
  void Take(MonotonicNs now, size_t max, const TrackedEventVisitor& visit);
  // For a stop: passes every record. Short processes above the budget are summed up, then the budget does not matter
  // any more: the rest is at most the queue's memory, and would be lost. No exit may be open.
  void TakeAll(MonotonicNs now, const TrackedEventVisitor& visit);

  size_t bytes() const;
  bool is_over_half() const { return bytes() > options_.bytes_max / 2; }
  uint64_t waiting() const { return events_.size() + sums_.events(); }  // events, also in sums
  const EventCounts& counts() const { return counts_; }
  uint64_t sums_refused() const { return sums_.refused(); }

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct List {
    uint32_t first = kNone, last = kNone;
  };
  struct Links {
    uint32_t previous = kNone, next = kNone;
  };
  struct Event {
    ProcessIdentity process;
    MonotonicNs time;
    Texts texts;
    Pid parent;
    uint32_t uid = 0;
    uint32_t end = kNone;  // in ends_
    Links by_arrival;      // in execs_ or others_
    Links by_process;      // in Life::execs
    ProcessEventKind kind = ProcessEventKind::kStart;
  };
  // The events of one process in the queue.
  struct Life {
    uint32_t start = kNone;
    uint32_t ending = kNone;  // exit or end_unknown
    List execs;               // and seen_running, in order of arrival
    uint32_t events = 0;
    bool open = false;  // `ending` waits to be completed
  };
  // An entry of lives_ and of foldable_, and the slot of lives_ at the lowest load.
  static constexpr size_t kLifeBytes = 2 * (sizeof(ProcessIdentity) + sizeof(Life) + 1) + sizeof(ProcessIdentity);
  struct Record;  // of Take: one event or one sum
  struct Short;   // of Take: a short process

  static bool IsExecLike(ProcessEventKind kind);
  bool IsShort(const Life& life) const;
  void Link(List& list, Links Event::* links, uint32_t number);
  void Unlink(List& list, Links Event::* links, uint32_t number);
  void CorrectRunTime(const Life& life);
  void NoteClosed(const ProcessIdentity& process, const Life& life);
  void Free(uint32_t number);
  void FreeLife(const Life& life);
  void Drop(uint32_t number);
  void MakeRoom();
  bool FoldOldest();
  SumKey KeyOf(const Life& life) const;
  void Fold(const Life& life);

  std::vector<Record> Choose();
  std::vector<Record> ChooseShorts(std::vector<Short> shorts, size_t others);
  void AddRecords(const Life& life, std::vector<Record>& to) const;
  void Send(const Record& record, const TrackedEventVisitor& visit);

  const Options options_;
  EventBudget budget_;
  EventCounts counts_;
  TextTable texts_;
  Slab<Event> events_;
  Slab<ProcessEnd> ends_;
  absl::flat_hash_map<ProcessIdentity, Life> lives_;
  List execs_, others_;                   // all events, in order of arrival
  std::deque<ProcessIdentity> foldable_;  // short processes in order of their ending; some are no longer in the queue
  ProcessSums sums_;
};

}  // namespace tributary
