#pragma once

#include <cstdint>

#include "bpf/include/sample_types.h"
#include "profile/accounting.h"

namespace tributary {

// Numbers of samples by type, as the structures of bpf/include/session.h hold them: TRIB_SAMPLE_TYPES_MAX numbers, the
// index is the type's number.

template <typename Counters>
SampleCounts ReadTypes(const Counters& from) {
  SampleCounts counts;
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) counts.Add(static_cast<SampleType>(type), from[type]);
  return counts;
}

// Types of larger numbers are none that a node collects.
template <typename Counters>
void WriteTypes(const SampleCounts& counts, Counters& to) {
  for (uint8_t type = 0; type < TRIB_SAMPLE_TYPES_MAX; ++type) to[type] = counts.Of(static_cast<SampleType>(type));
}

}  // namespace tributary
