#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/fd.h"

namespace tributary {

// perf_event_open(2) for the two events that every CPU gets. NotFound: the CPU is not online. PermissionDenied,
// Unimplemented: see ExplainPerfEventError.

// cpu-clock for all tasks on `cpu`, once every `period_ns`, with `program_fd` attached; created disabled.
absl::StatusOr<Fd> OpenSamplingEvent(int cpu, uint64_t period_ns, int program_fd);

// The dummy event whose ring tells of mmap, comm, fork, exit of all tasks on `cpu`, and of kernel code that comes and
// goes; created enabled. Its records end in the sample_id fields that kSampleIdBytes of sideband_record.h describes.
// InvalidArgument: `build_id` is true and the kernel is older than 5.12.
absl::StatusOr<Fd> OpenSidebandEvent(int cpu, bool build_id);

// From here on the event counts, from the start of a period.
absl::Status EnableEvent(const Fd& event);
// A new period begins now, and is as long as all that follow. Running or not.
absl::Status SetEventPeriod(const Fd& event, uint64_t period_ns);
// How long `event`, one of OpenSidebandEvent, has been enabled, by the kernel's scheduler clock. The kernel stops it
// when the event's CPU goes offline, and never starts it again. A system call and an interrupt of that CPU.
absl::StatusOr<int64_t> ReadEnabledNs(const Fd& event);
// When it returns, the event's program neither runs nor will.
void DisableEvent(const Fd& event);

}  // namespace tributary
