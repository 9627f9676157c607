#include <algorithm>
#include <limits>
#include <tuple>

#include "kernel-collector/events/event_queue.h"

// The part of EventQueue that chooses what to send.
namespace tributary {

struct EventQueue::Record {
  MonotonicNs time;
  uint8_t rank = 0;                 // of a process's events at one time: start, execs, ending
  uint32_t event = kNone;           // in events_
  const ProcessSum* sum = nullptr;  // if `event` is kNone

  friend bool operator<(const Record& a, const Record& b) {
    return std::tie(a.time, a.rank) < std::tie(b.time, b.rank);
  }
};

struct EventQueue::Short {
  ProcessIdentity process;
  SumKey key;
  uint32_t events = 0;
  MonotonicNs time;            // when it ended
  uint64_t events_of_key = 0;  // of all short processes with this key
};

// Adds the events of a process in their order. If a time contradicts the order, the record gets the time of the record
// before it, so sorting keeps the order.
void EventQueue::AddRecords(const Life& life, std::vector<Record>& to) const {
  const size_t first = to.size();
  for (uint32_t exec = life.execs.first; exec != kNone; exec = events_[exec].by_process.next) {
    to.push_back({.time = events_[exec].time, .rank = 1, .event = exec});
  }
  const auto execs = to.begin() + static_cast<ptrdiff_t>(first);
  if (!std::is_sorted(execs, to.end())) std::stable_sort(execs, to.end());
  if (life.start != kNone) {
    const MonotonicNs start = events_[life.start].time;
    for (auto exec = execs; exec != to.end(); ++exec) exec->time = std::max(exec->time, start);
    to.push_back({.time = start, .rank = 0, .event = life.start});
  }
  if (life.ending != kNone) {
    MonotonicNs time = events_[life.ending].time;
    for (size_t i = first; i < to.size(); ++i) time = std::max(time, to[i].time);
    to.push_back({.time = time, .rank = 2, .event = life.ending});
  }
}

// Decides which short processes are sent one by one, and returns their records. Sums up the others. Prefers the
// processes of which there are few: in a storm of equal processes, a sum of the storm says almost everything.
std::vector<EventQueue::Record> EventQueue::ChooseShorts(std::vector<Short> shorts, size_t others) {
  std::vector<Record> records;
  uint64_t events = 0;
  for (const Short& one : shorts) events += one.events;
  const uint64_t tokens = budget_.tokens(), reserve = budget_.capacity() / 4;
  const uint64_t allowed = tokens > reserve ? tokens - reserve : 0;
  if (events <= allowed && events + others + sums_.size() <= tokens) {
    for (const Short& one : shorts) AddRecords(lives_.find(one.process)->second, records);
    return records;
  }

  absl::flat_hash_map<SumKey, uint64_t> events_of_keys;
  for (const Short& one : shorts) events_of_keys[one.key] += one.events;
  uint64_t sums = sums_.size();  // if every key needs one
  for (const auto& [key, unused] : events_of_keys) sums += sums_.Contains(key) ? 0 : 1;
  for (Short& one : shorts) one.events_of_key = events_of_keys[one.key];
  std::sort(shorts.begin(), shorts.end(), [](const Short& a, const Short& b) {
    return std::tie(a.events_of_key, a.time, a.process) < std::tie(b.events_of_key, b.time, b.process);
  });
  uint64_t left = std::min(allowed, std::max(tokens / 4, tokens - std::min(tokens, others + sums)));
  for (const Short& one : shorts) {
    const Life& life = lives_.find(one.process)->second;
    if (one.events > left) {
      Fold(life);
      continue;
    }
    left -= one.events;
    AddRecords(life, records);
  }
  return records;
}

// Returns the records to send, sorted, at most as many as there are tokens.
std::vector<EventQueue::Record> EventQueue::Choose() {
  std::vector<Record> others;
  std::vector<Short> shorts;
  for (const auto& [process, life] : lives_) {
    if (life.open) continue;
    if (IsShort(life)) {
      shorts.push_back(
          {.process = process, .key = KeyOf(life), .events = life.events, .time = events_[life.ending].time});
    } else {
      AddRecords(life, others);
    }
  }
  std::stable_sort(others.begin(), others.end());
  std::vector<Record> records = ChooseShorts(std::move(shorts), others.size());

  const size_t left = budget_.tokens() - records.size();
  size_t others_left = others.size(), sums_left = sums_.size();
  if (others_left + sums_left > left) {
    sums_left = std::min(sums_left, std::max(left / 2, left - std::min(left, others_left)));
    others_left = std::min(others_left, left - sums_left);
  }
  records.insert(records.end(), others.begin(), others.begin() + static_cast<ptrdiff_t>(others_left));
  for (auto sum = sums_.sums().begin(); sums_left > 0; ++sum, --sums_left) {
    records.push_back({.time = sum->time, .sum = &*sum});
  }
  std::stable_sort(records.begin(), records.end());
  return records;
}

void EventQueue::Send(const Record& record, const TrackedEventVisitor& visit) {
  if (record.sum != nullptr) {
    const ProcessSum& sum = *record.sum;
    visit({.time = sum.time,
           .kind = ProcessEventKind::kSum,
           .uid = sum.key.uid,
           .name = texts_.Text(sum.key.texts.name),
           .names = texts_.Names(sum.key.texts),
           .events = sum.events,
           .processes = sum.processes,
           .end = sum.end});
    ++counts_.sums;
    counts_.summed += sum.events;
    sums_.Remove(sum);
    return;
  }
  const Event& event = events_[record.event];
  visit({.time = event.time,
         .kind = event.kind,
         .process = event.process,
         .parent = event.parent,
         .uid = event.uid,
         .name = texts_.Text(event.texts.name),
         .names = texts_.Names(event.texts),
         .end = event.end == kNone ? ProcessEnd{} : ends_[event.end]});
  ++counts_.sent;
  Free(record.event);
}

void EventQueue::Take(MonotonicNs now, size_t max, const TrackedEventVisitor& visit) {
  budget_.Refill(now);
  std::vector<Record> records = Choose();
  records.resize(std::min(records.size(), max));
  for (const Record& record : records) Send(record, visit);
  budget_.Spend(records.size());
  std::erase_if(foldable_, [this](const ProcessIdentity& process) {
    const auto found = lives_.find(process);
    return found == lives_.end() || !IsShort(found->second);
  });
}

void EventQueue::TakeAll(MonotonicNs now, const TrackedEventVisitor& visit) {
  Take(now, std::numeric_limits<size_t>::max(), visit);
  std::vector<Record> rest;
  for (const auto& [process, life] : lives_) AddRecords(life, rest);
  for (const ProcessSum& sum : sums_.sums()) rest.push_back({.time = sum.time, .sum = &sum});
  std::stable_sort(rest.begin(), rest.end());
  for (const Record& record : rest) Send(record, visit);
}

}  // namespace tributary
