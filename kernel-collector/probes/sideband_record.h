#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "base/types.h"
#include "kernel-collector/probes/probes.h"

namespace tributary {

// Parses the bytes of sideband records. The functions have no state, and accept any input. Layout: perf_event_open(2),
// "MMAP layout", and include/uapi/linux/perf_event.h.

// Every record ends with these fields: u32 pid, u32 tid, u64 time, u32 cpu, u32 0 (sample_id_all with TID | TIME |
// CPU).
constexpr size_t kSampleIdBytes = 24;

struct IgnoredRecord {};  // well formed, but of an unused kind, or a mapping that is not executable
struct BadRecord {};      // sizes or fields that make no sense

// String views in the result borrow the record's bytes.
using SidebandRecord = std::variant<IgnoredRecord, BadRecord, MmapEvent, ForkEvent, CommEvent, ExitEvent,
                                    KernelCodeEvent, CgroupEvent, LostEvent>;

// `record` is one whole record with its perf_event_header.
SidebandRecord ParseSidebandRecord(std::span<const uint8_t> record);

// Returns the time when the record was written; 0 if the record is too short to contain a time.
MonotonicNs SidebandRecordTime(std::span<const uint8_t> record);

}  // namespace tributary
