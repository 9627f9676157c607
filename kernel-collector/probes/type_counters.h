#pragma once

#include <cstdint>

#include "bpf/include/sample_types.h"
#include "profile/accounting.h"

namespace tributary {

// Numbers of samples by type, in the form of the structures in bpf/include/session.h: TRIB_SAMPLE_TYPES_MAX numbers,
// indexed by the type's number.

template <typename Counters>
SampleCounts ReadTypes(const Counters& from) {
  SampleCounts counts;
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) counts.Add(static_cast<SampleType>(type), from[type]);
  return counts;
}

// A node never collects types with larger numbers.
template <typename Counters>
void WriteTypes(const SampleCounts& counts, Counters& to) {
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) to[type] = counts.Of(static_cast<SampleType>(type));
}

}  // namespace tributary
