#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// perf_event_open(2) for the two events of every CPU. NotFound: the CPU is not online. PermissionDenied, Unimplemented:
// see ExplainPerfEventError.

// Opens cpu-clock for all tasks on `cpu`, with one event every `period_ns` and with `program_fd` attached. The event is
// created disabled.
absl::StatusOr<Fd> OpenSamplingEvent(int cpu, uint64_t period_ns, int program_fd);

// Opens the dummy event. Its ring reports executable mappings, comm, fork and exit of all tasks on `cpu`, new cgroups,
// and kernel code that is added or removed. The event is created enabled. Its records end in the sample_id fields that
// kSampleIdBytes of sideband_record.h describes. InvalidArgument if `build_id` is true and the kernel is older than
// 5.12.
absl::StatusOr<Fd> OpenSidebandEvent(int cpu, bool build_id);

// Starts the event with a new period.
absl::Status EnableEvent(const Fd& event);
// Starts a new period now. This period and all later ones are `period_ns` long. Works for running and for stopped
// events.
absl::Status SetEventPeriod(const Fd& event, uint64_t period_ns);
// Returns how long `event` has been enabled, by the kernel's scheduler clock. `event` comes from OpenSidebandEvent. The
// kernel stops the event when its CPU goes offline, and never starts it again. Costs a system call and an interrupt of
// that CPU.
absl::StatusOr<int64_t> ReadEnabledNs(const Fd& event);
// Stops the event. After the return, its program neither runs nor will run.
void DisableEvent(const Fd& event);

}  // namespace tributary
