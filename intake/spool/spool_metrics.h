#pragma once

#include <cstdint>

#include "base/metrics.h"

namespace tributary::intake {

// The operations of a spool's storage, for the counters of failures.
enum class SpoolOperation : uint8_t { kRead, kAppend, kSync, kClaim, kRemove };

// The metrics of a spool (docs/metrics.md).
struct SpoolMetrics {
  explicit SpoolMetrics(Metrics& metrics);

  Gauge& segments;
  Gauge& bytes;
  Gauge& samples;
  Counter& dropped_overflow;
  Counter& dropped_damaged;
  Counter& damaged_segments;
  Counter* failures[5];  // by SpoolOperation
};

}  // namespace tributary::intake
