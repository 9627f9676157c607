#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "absl/status/status.h"
#include "intake/codec/columns.h"
#include "intake/wire/messages.h"
#include "profile/process_event.h"

namespace tributary::intake {

// Writes and reads the process events of a batch as columns (docs/intake-protocol.md). The events are in order of time.
// Times are rounded to 100 µs. The other values are exact, except that usage (ProcessEnd) above kProcessUsageMax
// becomes kProcessUsageMax. Only events with has_end() have an end on the wire, and only sums have `events` and
// `processes`.

// The number of the family of process events in a batch. The number 0 would be samples, which are not in a family.
constexpr uint8_t kFamilyProcessEvents = 1;
constexpr size_t kFamiliesMax = 8;  // per batch

// Upper limits for the bytes that one event needs in all columns together: times 7, kinds 1, processes 3, pids 5,
// parents 5, starts 10, uids 5, names, paths, containers and cgroups 3 each, exit codes and signals 2 each, end flags
// 1, run, user and system time and peak 10 each.
constexpr size_t kEventBytesMax = 93;
constexpr uint64_t kProcessUsageMax = INT64_MAX;

// Calls visit(ref) for each string of the event.
template <typename Event, typename Visit>
void ForEachString(Event& event, Visit&& visit) {
  visit(event.name);
  visit(event.executable_path);
  visit(event.container_id);
  visit(event.cgroup_path);
}

void WriteEvents(std::span<const ProcessEvent> events, MonotonicNs clock, ColumnWriter& to);

// Reads the events into `out`. InvalidArgument if the columns are malformed, if a string is not defined, or if there
// are more than kProcessEventsPerBatchMax events.
absl::Status ReadEvents(const EventColumnSet& columns, MonotonicNs clock, const DictionaryCounts& after,
                        IncomingBatch* out);

}  // namespace tributary::intake
