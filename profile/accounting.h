#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string_view>

#include "profile/sample_counts.h"

namespace tributary {

// Why a sample was lost after `captured` counted it. `tributary status`, metrics and docs/metrics.md use the names.
enum class LossReason : uint8_t {
  kRingFull = 0,         // the BPF ring buffer was full
  kStackError = 1,       // the BPF program's scratch memory was missing
  kHoldOverflow = 2,     // too many samples waited until a mapping, file or process was read
  kBadRecord = 3,        // a record from the ring buffer was not valid
  kBatchOverflow = 4,    // unsent batches exceeded the memory limit: the oldest were dropped
  kRejected = 5,         // the reducer refused the batch as malformed, or the batch was too large to send
  kShutdown = 6,         // not delivered before the deadline of a stop
  kInDoubt = 7,          // sent to a reducer that then did not answer in time
  kCollectorKilled = 8,  // captured by a collector that was killed before it sent the sample
  kSpoolOverflow = 9,    // the spool or its disk was full: the oldest batches were dropped
  kSpoolDamaged = 10,    // a file of the spool cannot be read any more
  kNotTaken = 11,        // a reducer of an earlier release cannot store this kind of record
  kEventOverflow = 12,   // more process events than the event budget allows, and they could not be summed up
  kMissed = 13,          // the kernel did not run the BPF program that reports the process event
  kTooOld = 14,          // older than the reducer's retention when it arrived; only the reducer counts this
  kOptedOut = 15,        // of a container whose pod or namespace opted out (docs/opt-out.md): not a fault
  // The same, counted by the reducer. The store keeps it apart from the number that the node reports. Readers of the
  // store see the sum of both as kOptedOut (SessionTotals::WithClosing).
  kOptedOutAtReducer = 16,
};
constexpr uint8_t kLossReasonCount = 17;
constexpr size_t kLossReasonsMax = 64;               // limit in all formats, so that later releases can add reasons
std::string_view LossReasonName(LossReason reason);  // "ring_full", …

// Running totals of a session since its start. `captured` counts captured samples: for CPU samples, the sampling ticks
// on busy CPUs. It also counts process events. When every captured sample and event was stored or reported lost,
// captured = stored + Σ lost holds for each sample type, and for process events.
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
  // Returns true if there are process events, or samples of another type than CPU.
  bool HasParts() const {
    return !captured.parts().empty() || std::any_of(std::begin(lost), std::end(lost), [](const CountsBy<Key>& samples) {
      return !samples.parts().empty();
    });
  }
  // Returns captured plus lost. The parts() of the result are all types other than CPU that occur here.
  CountsBy<Key> Counted() const { return captured + TotalLost(); }
  CountsBy<Key>& LostFor(LossReason reason) { return lost[static_cast<size_t>(reason)]; }
  const CountsBy<Key>& LostFor(LossReason reason) const { return lost[static_cast<size_t>(reason)]; }
  AccountingBy& operator+=(const AccountingBy& other) {
    captured += other.captured;
    idle += other.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] += other.lost[i];
    return *this;
  }
  // Subtracts earlier totals of the same session. The result is the counts since those totals.
  AccountingBy& operator-=(const AccountingBy& before) {
    captured -= before.captured;
    idle -= before.idle;
    for (size_t i = 0; i < kLossReasonCount; ++i) lost[i] -= before.lost[i];
    return *this;
  }
  friend bool operator==(const AccountingBy&, const AccountingBy&) = default;
};

// SampleCounts and Accounting are for one source and use its type numbers. The Named variants can be sums over several
// sources, so they identify a sample type by its name, unit and aggregation.
using SampleCounts = CountsBy<SampleType>;
using Accounting = AccountingBy<SampleType>;
using NamedSampleCounts = CountsBy<SampleTypeInfo>;
using NamedAccounting = AccountingBy<SampleTypeInfo>;

}  // namespace tributary
