#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "profile/sample_counts.h"

namespace tributary {

// The reasons for which a sample can be lost after `captured` counted it. The names appear in status, metrics and
// docs/metrics.md.
enum class LossReason : uint8_t {
  kRingFull = 0,         // the BPF ring buffer was full
  kStackError = 1,       // no stack could be read at all, or the scratch buffer was missing
  kHoldOverflow = 2,     // too many samples were waiting for their mapping
  kBadRecord = 3,        // an invalid ring record
  kBatchOverflow = 4,    // unacknowledged batches were over their memory limit: the oldest were dropped
  kRejected = 5,         // the reducer refused the batch as malformed
  kShutdown = 6,         // not delivered before the deadline of a stop
  kInDoubt = 7,          // sent to a reducer that did not answer again
  kCollectorKilled = 8,  // captured by a collector that was killed before it sent them
  kSpoolOverflow = 9,    // the spool was over its limit, or its disk was full: the oldest were dropped
  kSpoolDamaged = 10,    // a spooled segment can no longer be read
};
constexpr uint8_t kLossReasonCount = 11;
constexpr size_t kLossReasonsMax = 64;               // limit of the formats: a later release may add reasons
std::string_view LossReasonName(LossReason reason);  // "ring_full", …

// Running totals of a session since its start. `captured` counts the runs of the BPF program on busy CPUs. For each
// sample type, captured = stored + Σ lost as soon as each captured sample was either stored or reported lost.
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
  // Returns true if any captured or lost sample has another type than CPU.
  bool HasParts() const {
    return !captured.parts().empty() || std::any_of(std::begin(lost), std::end(lost), [](const CountsBy<Key>& samples) {
      return !samples.parts().empty();
    });
  }
  // Returns captured plus lost. The parts of the sum are all types other than CPU that were counted.
  CountsBy<Key> Counted() const { return captured + TotalLost(); }
  CountsBy<Key>& LostFor(LossReason reason) { return lost[static_cast<size_t>(reason)]; }
  const CountsBy<Key>& LostFor(LossReason reason) const { return lost[static_cast<size_t>(reason)]; }
  AccountingBy& operator+=(const AccountingBy& other) {
    captured += other.captured;
    idle += other.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] += other.lost[i];
    return *this;
  }
  // Subtracts earlier totals of the same session. The result is the counts since then.
  AccountingBy& operator-=(const AccountingBy& before) {
    captured -= before.captured;
    idle -= before.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] -= before.lost[i];
    return *this;
  }
  friend bool operator==(const AccountingBy&, const AccountingBy&) = default;
};

// SampleCounts and Accounting belong to one source and use its type numbers. The Named variants add up several sources,
// so they identify a type by its name, unit and aggregation.
using SampleCounts = CountsBy<SampleType>;
using Accounting = AccountingBy<SampleType>;
using NamedSampleCounts = CountsBy<SampleTypeInfo>;
using NamedAccounting = AccountingBy<SampleTypeInfo>;

}  // namespace tributary
