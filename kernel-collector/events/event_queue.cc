#include "kernel-collector/events/event_queue.h"

#include <algorithm>

namespace tributary {
namespace {

// From start to end; never negative, also if the times are.
uint64_t RunTime(MonotonicNs start, MonotonicNs end) {
  return end > start ? static_cast<uint64_t>(end.value) - static_cast<uint64_t>(start.value) : 0;
}

}  // namespace

EventQueue::EventQueue(const Options& options, MonotonicNs now)
    : options_(options),
      budget_(options.events_per_second, now),
      sums_(texts_, options.sums_max, options.bytes_max / 2) {}

bool EventQueue::IsExecLike(ProcessEventKind kind) {
  return kind == ProcessEventKind::kExec || kind == ProcessEventKind::kSeenRunning;
}

bool EventQueue::IsShort(const Life& life) const {
  return life.start != kNone && life.ending != kNone && !life.open &&
         events_[life.ending].kind == ProcessEventKind::kExit;
}

size_t EventQueue::bytes() const {
  return events_.size() * sizeof(Event) + ends_.size() * sizeof(ProcessEnd) + lives_.size() * kLifeBytes +
         sums_.bytes() + texts_.bytes();
}

void EventQueue::Add(const TrackedEvent& event, bool open) {
  ++counts_.seen;
  Life& life = lives_[event.process];
  const bool is_exec = IsExecLike(event.kind);
  const bool is_start = event.kind == ProcessEventKind::kStart;
  if (!is_exec && (is_start ? life.start : life.ending) != kNone) {
    ++counts_.lost;
    return;
  }
  const bool has_end = event.kind == ProcessEventKind::kExit;
  const uint32_t number = events_.Add({.process = event.process,
                                       .time = event.time,
                                       .texts = texts_.Take(event.name, event.names),
                                       .parent = event.parent,
                                       .uid = event.uid,
                                       .end = has_end ? ends_.Add(event.end) : kNone,
                                       .kind = event.kind});
  ++life.events;
  Link(is_exec ? execs_ : others_, &Event::by_arrival, number);
  if (is_exec) {
    Link(life.execs, &Event::by_process, number);
  } else if (is_start) {
    life.start = number;
    CorrectRunTime(life);
    NoteClosed(event.process, life);
  } else {
    life.ending = number;
    life.open = open && has_end;
    NoteClosed(event.process, life);
  }
  MakeRoom();
}

void EventQueue::Refuse() {
  ++counts_.seen;
  ++counts_.lost;
}

bool EventQueue::HasEnding(const ProcessIdentity& process) const {
  const auto found = lives_.find(process);
  return found != lives_.end() && found->second.ending != kNone;
}

bool EventQueue::IsOpen(const ProcessIdentity& process) const {
  const auto found = lives_.find(process);
  return found != lives_.end() && found->second.open;
}

bool EventQueue::Complete(const ProcessIdentity& process, const Final& final) {
  const auto found = lives_.find(process);
  if (found == lives_.end() || !found->second.open) return false;
  ProcessEnd& end = ends_[events_[found->second.ending].end];
  end.user_ns = final.cpu.user_ns;
  end.system_ns = final.cpu.system_ns;
  end.peak_rss_bytes = std::max(end.peak_rss_bytes, final.peak_rss_bytes);
  Close(process);
  return true;
}

void EventQueue::Close(const ProcessIdentity& process) {
  const auto found = lives_.find(process);
  if (found == lives_.end() || !found->second.open) return;
  found->second.open = false;
  NoteClosed(process, found->second);
}

void EventQueue::NoteClosed(const ProcessIdentity& process, const Life& life) {
  if (IsShort(life)) foldable_.push_back(process);
}

// If the start arrived after the exit, the exit's run time was only an estimate.
void EventQueue::CorrectRunTime(const Life& life) {
  if (life.ending == kNone || events_[life.ending].end == kNone) return;
  ends_[events_[life.ending].end].run_ns = RunTime(events_[life.start].time, events_[life.ending].time);
}

void EventQueue::Link(List& list, Links Event::* links, uint32_t number) {
  events_[number].*links = {.previous = list.last};
  (list.last == kNone ? list.first : (events_[list.last].*links).next) = number;
  list.last = number;
}

void EventQueue::Unlink(List& list, Links Event::* links, uint32_t number) {
  const Links here = events_[number].*links;
  (here.previous == kNone ? list.first : (events_[here.previous].*links).next) = here.next;
  (here.next == kNone ? list.last : (events_[here.next].*links).previous) = here.previous;
}

// Removes an event, and its process after its last event.
void EventQueue::Free(uint32_t number) {
  const Event& event = events_[number];
  const auto found = lives_.find(event.process);
  Life& life = found->second;
  const bool is_exec = IsExecLike(event.kind);
  Unlink(is_exec ? execs_ : others_, &Event::by_arrival, number);
  if (is_exec) {
    Unlink(life.execs, &Event::by_process, number);
  } else {
    (life.start == number ? life.start : life.ending) = kNone;
  }
  if (life.ending == kNone) life.open = false;
  texts_.Release(event.texts);
  if (event.end != kNone) ends_.Remove(event.end);
  events_.Remove(number);
  if (--life.events == 0) lives_.erase(found);
}

void EventQueue::FreeLife(const Life& life) {
  const uint32_t start = life.start, ending = life.ending;
  for (uint32_t exec = life.execs.first; exec != kNone;) {
    const uint32_t next = events_[exec].by_process.next;
    Free(exec);  // `life` stays, because it has other events
    exec = next;
  }
  Free(start);
  Free(ending);
}

void EventQueue::Drop(uint32_t number) {
  ++counts_.lost;
  Free(number);
}

void EventQueue::MakeRoom() {
  while (bytes() > options_.bytes_max) {
    if (FoldOldest()) continue;
    if (execs_.first != kNone) {
      Drop(execs_.first);
    } else if (others_.first != kNone) {
      Drop(others_.first);
    } else if (sums_.size() > 0) {
      counts_.lost += sums_.sums().front().events;
      sums_.Remove(sums_.sums().front());
    } else {
      return;
    }
  }
}

bool EventQueue::FoldOldest() {
  while (!foldable_.empty()) {
    const auto found = lives_.find(foldable_.front());
    foldable_.pop_front();
    if (found == lives_.end() || !IsShort(found->second)) continue;
    Fold(found->second);
    return true;
  }
  return false;
}

SumKey EventQueue::KeyOf(const Life& life) const {
  const Event& exit = events_[life.ending];
  return MakeSumKey(exit.texts, exit.uid, ends_[exit.end]);
}

// Moves the events of a short process to a sum.
void EventQueue::Fold(const Life& life) {
  const Event& exit = events_[life.ending];
  if (!sums_.Add(KeyOf(life), ends_[exit.end], exit.time, life.events)) counts_.lost += life.events;
  FreeLife(life);
}

}  // namespace tributary
