#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/metrics.h"

namespace tributary {

// Decides when a component writes to its store again after a failed write. The usual cause is a full disk, so pauses
// grow from 1 s to 1 minute. Logs one line when writes begin to fail, and one when they work again. The owner keeps the
// unwritten changes in memory meanwhile. Not thread-safe.
class WriteRetry {
 public:
  static constexpr Backoff::Bounds kPausesNs = {kNsPerSecond, 60 * kNsPerSecond};

  // `what` is part of log messages, and is the label of the gauge that shows whether writes fail. `clock`, `metrics`
  // and `failures` must outlive this object. `failures` counts failed writes.
  WriteRetry(std::string what, const Clock& clock, Metrics& metrics, Counter& failures);

  bool failing() const { return backoff_.failures() > 0; }
  // Returns false during the pause after a failed write.
  bool MayTry() const;
  // Records the result of a write. If the write failed, a pause begins.
  void Record(const absl::Status& written);

 private:
  const std::string what_;
  const Clock& clock_;
  Counter& failures_;
  Gauge& failing_;
  Backoff backoff_{kPausesNs};
  MonotonicNs next_;  // end of the pause
};

}  // namespace tributary
