#pragma once

#include <cstdint>
#include <string_view>

#include "base/types.h"
#include "otlp/record_logs.h"
#include "profile/attributes.h"
#include "profile/sample_types.h"

namespace tributary::otlp {

// Samples or process events of a node that were lost.
struct LossInfo {
  SampleTypeInfo type;      // SampleTypeInfo{}: process events
  std::string_view reason;  // "ring_full", …
  int64_t samples = 0;      // below 0: samples that had counted as lost have arrived
  UnixNs first, last;       // times of the first and of the last report of the losses
};

// Adds a record of the loss.
void AddLoss(const Attributes& resource, const LossInfo& loss, RecordLogs* logs);

}  // namespace tributary::otlp
