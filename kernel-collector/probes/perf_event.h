#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// Functions for the two perf events of every CPU (perf_event_open(2)). NotFound: the CPU is not online.
// PermissionDenied, Unimplemented: see ExplainPerfEventError.

// Opens a cpu-clock perf event for all tasks on `cpu`. The event runs the BPF program `program_fd` every `period_ns`.
// The event is created disabled.
absl::StatusOr<Fd> OpenSamplingEvent(int cpu, uint64_t period_ns, int program_fd);

// Opens the sideband's event, a perf event of type dummy. Its ring gets a record for each executable mapping, new
// thread name (comm), fork and exit of all tasks on `cpu`, for each new cgroup, and for kernel code that is added or
// removed. The event is created enabled. Each record ends with the fields that are described at kSampleIdBytes in
// sideband_record.h. InvalidArgument if `build_id` is true and the kernel is older than 5.12.
absl::StatusOr<Fd> OpenSidebandEvent(int cpu, bool build_id);

// Enables the event. A new period begins.
absl::Status EnableEvent(const Fd& event);
// Starts a new period now. This period and all later ones are `period_ns` long. The event may be enabled or disabled.
absl::Status SetEventPeriod(const Fd& event, uint64_t period_ns);
// Returns how long `event` has been enabled, by the kernel's scheduler clock. `event` comes from OpenSidebandEvent.
// When the event's CPU goes offline, the kernel stops the event and never starts it again, so the time no longer grows.
// Costs a system call and an interrupt of that CPU.
absl::StatusOr<int64_t> ReadEnabledNs(const Fd& event);
// Disables the event. After the return, its program does not run any more.
void DisableEvent(const Fd& event);

}  // namespace tributary
