#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "profile/sample_counts.h"

namespace tributary {

// Every way to lose a sample after `captured` counted it. Names are in status, metrics and docs/metrics.md.
enum class LossReason : uint8_t {
  kRingFull = 0,         // the BPF ring buffer had no room
  kStackError = 1,       // no stack could be read at all, or the scratch buffer was missing
  kHoldOverflow = 2,     // too many samples waiting for their mapping
  kBadRecord = 3,        // a ring record that makes no sense
  kBatchOverflow = 4,    // unacknowledged batches over their memory cap: the oldest are dropped
  kRejected = 5,         // the reducer refused them as malformed
  kShutdown = 6,         // not delivered within the time that a stop allows
  kInDoubt = 7,          // sent to a reducer that never answered again
  kCollectorKilled = 8,  // captured by a collector that was killed before sending
  kSpoolOverflow = 9,    // over the spool's cap, or its disk is full: the oldest are dropped
  kSpoolDamaged = 10,    // a spooled segment that cannot be read any more
};
constexpr uint8_t kLossReasonCount = 11;
constexpr size_t kLossReasonsMax = 64;               // that formats have room for: a later release may have more
std::string_view LossReasonName(LossReason reason);  // "ring_full", …

// A session's running totals, from its start. Captured counts program entries on busy CPUs. The law, for each type of
// samples by itself: captured = stored + Σ lost, once nothing is on its way.
template <typename Key>
struct AccountingBy {
  CountsBy<Key> captured;
  uint64_t idle = 0;  // ticks on an idle CPU: not samples
  CountsBy<Key> lost[kLossReasonCount] = {};

  CountsBy<Key> TotalLost() const {
    CountsBy<Key> sum;
    for (const CountsBy<Key>& samples : lost) sum += samples;
    return sum;
  }
  // False: of all that is counted, nothing is of another type than CPU.
  bool HasParts() const {
    return !captured.parts().empty() || std::any_of(std::begin(lost), std::end(lost), [](const CountsBy<Key>& samples) {
      return !samples.parts().empty();
    });
  }
  // Captured and lost together: its parts are the types that are counted at all.
  CountsBy<Key> Counted() const { return captured + TotalLost(); }
  CountsBy<Key>& LostFor(LossReason reason) { return lost[static_cast<size_t>(reason)]; }
  const CountsBy<Key>& LostFor(LossReason reason) const { return lost[static_cast<size_t>(reason)]; }
  AccountingBy& operator+=(const AccountingBy& other) {
    captured += other.captured;
    idle += other.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] += other.lost[i];
    return *this;
  }
  // Of what is running: what came since `before`.
  AccountingBy& operator-=(const AccountingBy& before) {
    captured -= before.captured;
    idle -= before.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] -= before.lost[i];
    return *this;
  }
  friend bool operator==(const AccountingBy&, const AccountingBy&) = default;
};

// Of one source, by its numbers of types; of several sources, by what types are called.
using SampleCounts = CountsBy<SampleType>;
using Accounting = AccountingBy<SampleType>;
using NamedSampleCounts = CountsBy<SampleTypeInfo>;
using NamedAccounting = AccountingBy<SampleTypeInfo>;

}  // namespace tributary
