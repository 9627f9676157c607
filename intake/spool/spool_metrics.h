#pragma once

#include <cstdint>

#include "base/metrics.h"
#include "profile/accounting.h"

namespace tributary::intake {

// The operations of a spool's storage, for the counters of failures.
enum class SpoolOperation : uint8_t { kRead, kAppend, kSync, kClaim, kRemove };

// The metrics of a spool (docs/metrics.md).
struct SpoolMetrics {
  explicit SpoolMetrics(Metrics& metrics);

  // Spooled samples and process events that were lost for one reason.
  struct Dropped {
    Counter& samples;
    Counter& events;
    void Add(const SampleCounts& lost) {
      samples.Add(lost.total());
      events.Add(lost.events());
    }
  };

  Gauge& segments;
  Gauge& bytes;
  Gauge& samples;
  Dropped overflow, damaged;
  Counter& damaged_segments;
  Counter* failures[5];  // by SpoolOperation
};

}  // namespace tributary::intake
