#include "reducer/export/event_attributes.h"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/store/store_times.h"

namespace tributary {
namespace {

using Key = std::tuple<int64_t, int32_t, int64_t>;  // machine, pid, start time

struct Found {
  uint32_t exec_sequence = 0;
  store::StringId attributes;
};

// The processes that are looked up.
struct Wanted {
  absl::flat_hash_map<Key, Found> processes;
  std::vector<store::MachineNo> machines;  // sorted
  std::set<int32_t> slots;                 // of the events
  uint64_t left_out = 0;                   // events in other slots
};

// Returns the slots with the most events.
std::set<int32_t> FullestSlots(const std::map<int32_t, uint64_t>& events_in) {
  std::vector<std::pair<uint64_t, int32_t>> by_events;
  for (const auto& [slot, events] : events_in) by_events.emplace_back(events, slot);
  std::sort(by_events.rbegin(), by_events.rend());
  if (by_events.size() > kAttributeSlotsMax) by_events.resize(kAttributeSlotsMax);
  std::set<int32_t> slots;
  for (const auto& [events, slot] : by_events) slots.insert(slot);
  return slots;
}

// Returns the times whose processes are read. A process is stored in the slots in which it was sampled, so that its
// start and its end may be in the slots next to them.
std::vector<store::TimeRange> RangesOf(const std::set<int32_t>& slots_of_events) {
  std::set<int32_t> slots;
  for (const int32_t slot : slots_of_events) slots.insert({slot - 1, slot, slot + 1});
  std::vector<store::TimeRange> ranges;
  for (const int32_t slot : slots) {
    const UnixNs from = store::StartOf(store::Slot{slot}), to = store::StartOf(store::Slot{slot + 1});
    if (!ranges.empty() && ranges.back().to == from) {
      ranges.back().to = to;
    } else {
      ranges.push_back({from, to});
    }
  }
  return ranges;
}

// Finds the processes of events, by the names of their machines.
class EventKeys {
 public:
  static absl::StatusOr<EventKeys> Make(store::StoreReader& reader) {
    ASSIGN_OR_RETURN(const auto machines, reader.ListMachines());
    EventKeys keys;
    for (const auto& [no, machine] : machines) keys.machines_.emplace(machine.node_id, no.value);
    return keys;
  }
  // Returns nullopt if the event has no process, or if its machine is unknown.
  std::optional<Key> Of(const store::EventRecord& event) const {
    const auto machine = machines_.find(event.node_id);
    if (machine == machines_.end() || event.start_time_ns == 0) return std::nullopt;
    return Key(machine->second, event.pid.value, event.start_time_ns);
  }
  Wanted WantedBy(std::span<const store::EventRecord> events) const {
    std::map<int32_t, uint64_t> events_in;
    for (const store::EventRecord& event : events) {
      if (Of(event)) ++events_in[store::SlotOf(event.time).value];
    }
    Wanted wanted{.processes = {}, .machines = {}, .slots = FullestSlots(events_in)};
    std::set<int64_t> machines;
    for (const store::EventRecord& event : events) {
      const std::optional<Key> key = Of(event);
      if (!key) continue;
      if (!wanted.slots.contains(store::SlotOf(event.time).value)) {
        ++wanted.left_out;
        continue;
      }
      wanted.processes.try_emplace(*key);
      machines.insert(std::get<0>(*key));
    }
    for (const int64_t machine : machines) wanted.machines.push_back(store::MachineNo{machine});
    return wanted;
  }

 private:
  std::map<std::string, int64_t> machines_;
};

}  // namespace

absl::StatusOr<uint64_t> AddProcessAttributes(store::StoreReader& reader, std::span<store::EventRecord> events) {
  ASSIGN_OR_RETURN(const EventKeys keys, EventKeys::Make(reader));
  Wanted wanted = keys.WantedBy(events);
  const auto add = [&wanted](std::span<const store::ProcessIds> processes) {
    for (const store::ProcessIds& process : processes) {
      const auto found = wanted.processes.find(Key(process.machine.value, process.pid.value, process.start_time_ns));
      if (found == wanted.processes.end() || process.attributes.value == 0) continue;
      // A process that has called exec has several rows.
      if (found->second.attributes.value != 0 && process.exec_sequence <= found->second.exec_sequence) continue;
      found->second = {process.exec_sequence, process.attributes};
    }
    return absl::OkStatus();
  };
  const store::ScanFilter filter{.machines = wanted.machines};
  for (const store::TimeRange& range : RangesOf(wanted.slots)) {
    RETURN_IF_ERROR(reader.ScanProcessIds(range, filter, add));
  }
  std::vector<std::string_view> texts(events.size());
  uint64_t left_out = wanted.left_out;
  size_t bytes = 0;
  for (size_t i = 0; i < events.size(); ++i) {
    const std::optional<Key> key = keys.Of(events[i]);
    const auto found = key ? wanted.processes.find(*key) : wanted.processes.end();
    if (found == wanted.processes.end() || found->second.attributes.value == 0) continue;
    ASSIGN_OR_RETURN(const std::string_view text, reader.Text(found->second.attributes));
    bytes += text.size();
    if (bytes > kAttributeBytesMax) {
      ++left_out;
    } else {
      texts[i] = text;
    }
  }
  for (size_t i = 0; i < events.size(); ++i) events[i].attributes = texts[i];
  return left_out;
}

}  // namespace tributary
