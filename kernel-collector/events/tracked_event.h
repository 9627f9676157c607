#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

#include "base/types.h"
#include "profile/process_event.h"

namespace tributary {

// Identifies a process within one boot. The kernel reuses pids, sometimes within a millisecond, so the start time is
// always part of the identity. It must be the kernel's exact value: times from /proc are rounded to ticks, and never
// match.
struct ProcessIdentity {
  Pid pid;
  int64_t start_time_ns = 0;  // of the thread group leader, CLOCK_BOOTTIME

  friend auto operator<=>(const ProcessIdentity&, const ProcessIdentity&) = default;
  template <typename H>
  friend H AbslHashValue(H h, const ProcessIdentity& p) {
    return H::combine(std::move(h), p.pid, p.start_time_ns);
  }
};

// The names of a process that are not in the kernel's record. "": unknown.
struct EventNames {
  std::string_view executable_path, container_id, cgroup_path;
};

// A process event with its texts, before they are in a dictionary. The fields are as in ProcessEvent.
struct TrackedEvent {
  MonotonicNs time;
  ProcessEventKind kind = ProcessEventKind::kStart;
  ProcessIdentity process;  // of a sum: 0
  Pid parent;
  uint32_t uid = 0;
  std::string_view name;
  EventNames names;
  uint32_t events = 1;
  uint32_t processes = 1;
  ProcessEnd end;  // of an exit or a sum
};
// The event's texts are valid only while the visitor runs.
using TrackedEventVisitor = std::function<void(const TrackedEvent&)>;

}  // namespace tributary
