#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"

namespace tributary {

// Counts the runs of a tracepoint in which the kernel has skipped all copies of a program (bpf/process_events.bpf.h).
// These are the skipped runs of the first copy, minus the runs in which another copy replaced it. A run may just be
// between two copies. So skipped runs count only after kSettleNs, and no run is counted by mistake. While the kernel
// skips runs all the time, a missed run may count later.
class MissedRuns {
 public:
  static constexpr int64_t kSettleNs = kNsPerSecond;

  // `skipped` and `repeated`: running totals; `skipped` was read first. `is_last`: the programs do not run any more, so
  // all skipped runs count. Returns the number of missed runs, which never decreases.
  uint64_t Update(uint64_t skipped, uint64_t repeated, MonotonicNs now, bool is_last) {
    if (now.value - read_at_.value >= kSettleNs) {
      settled_ = unsettled_;
      unsettled_ = skipped;
      read_at_ = now;
    }
    if (is_last) settled_ = skipped;
    missed_ = std::max(missed_, static_cast<int64_t>(settled_ - repeated));
    return static_cast<uint64_t>(missed_);
  }

 private:
  uint64_t unsettled_ = 0;  // skipped runs at read_at_
  uint64_t settled_ = 0;    // skipped runs at least kSettleNs before read_at_
  MonotonicNs read_at_;
  int64_t missed_ = 0;
};

}  // namespace tributary
