#pragma once

#include <cstdint>

#include "base/metrics.h"

namespace tributary::intake {

// The operation of a spool that failed because of its storage.
enum class SpoolOperation : uint8_t { kRead, kAppend, kSync, kClaim, kRemove };

// The metrics of a spool. docs/metrics.md says how to react to them.
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
