#include "reducer/export/event_attributes.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/store/store_times.h"

namespace tributary {
namespace {

constexpr size_t kBytesMax = 32u << 20;  // of attributes, in one batch of events

using Key = std::tuple<int64_t, int32_t, int64_t>;  // machine, pid, start time

struct Found {
  uint32_t exec_sequence = 0;
  store::StringId attributes;
};

// Returns the times whose processes are read. A process is stored in the slots in which it was sampled, so that its
// start and its end may be in the slots next to them.
std::vector<store::TimeRange> RangesOf(std::span<const store::EventRecord> events) {
  std::set<int32_t> slots;
  for (const store::EventRecord& event : events) {
    if (event.start_time_ns == 0) continue;
    const int32_t slot = store::SlotOf(event.time).value;
    for (int32_t near = slot - 1; near <= slot + 1; ++near) slots.insert(near);
  }
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

}  // namespace

absl::Status AddProcessAttributes(store::StoreReader& reader, std::span<store::EventRecord> events) {
  ASSIGN_OR_RETURN(const auto machines, reader.ListMachines());
  std::map<std::string, int64_t> machine_of;
  for (const auto& [no, machine] : machines) machine_of.emplace(machine.node_id, no.value);
  absl::flat_hash_map<Key, Found> wanted;
  const auto key_of = [&](const store::EventRecord& event) {
    const auto machine = machine_of.find(event.node_id);
    return Key(machine != machine_of.end() ? machine->second : 0, event.pid.value, event.start_time_ns);
  };
  for (const store::EventRecord& event : events) {
    if (event.start_time_ns != 0) wanted.try_emplace(key_of(event));
  }
  const auto add = [&wanted](std::span<const store::ProcessIds> processes) {
    for (const store::ProcessIds& process : processes) {
      const auto found = wanted.find(Key(process.machine.value, process.pid.value, process.start_time_ns));
      if (found == wanted.end() || process.attributes.value == 0) continue;
      // A process that has called exec has several rows.
      if (found->second.attributes.value != 0 && process.exec_sequence <= found->second.exec_sequence) continue;
      found->second = {process.exec_sequence, process.attributes};
    }
    return absl::OkStatus();
  };
  for (const store::TimeRange& range : RangesOf(events)) RETURN_IF_ERROR(reader.ScanProcessIds(range, {}, add));
  size_t bytes = 0;
  for (store::EventRecord& event : events) {
    const auto found = wanted.find(key_of(event));
    if (found == wanted.end() || found->second.attributes.value == 0) continue;
    ASSIGN_OR_RETURN(const std::string_view text, reader.Text(found->second.attributes));
    bytes += text.size();
    if (bytes > kBytesMax) return absl::OkStatus();
    event.attributes = text;
  }
  return absl::OkStatus();
}

}  // namespace tributary
