#pragma once

#include <cstdint>

#include "bpf/include/sample_types.h"
#include "profile/accounting.h"

namespace tributary {

// Returns the numbers of samples by type. `from` is an array as in bpf/include/session.h: TRIB_SAMPLE_TYPES_MAX
// numbers, indexed by the number of the sample type.

template <typename Counters>
SampleCounts ReadTypes(const Counters& from) {
  SampleCounts counts;
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) counts.Add(static_cast<SampleType>(type), from[type]);
  return counts;
}

// Writes the counts of the sample types below TRIB_SAMPLE_TYPES_MAX. A node does not collect other types.
template <typename Counters>
void WriteTypes(const SampleCounts& counts, Counters& to) {
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) to[type] = counts.Of(static_cast<SampleType>(type));
}

}  // namespace tributary
