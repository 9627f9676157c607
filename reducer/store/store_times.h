#pragma once

#include <cstdint>

#include "base/strong.h"
#include "base/types.h"
#include "profile/batch.h"
#include "reducer/store/store.h"

// The units of time that all stores use: samples are summed up per minute, processes are described per slot, and there
// is one trie per day. Minutes, slots and days are numbered from 1970-01-01 UTC. Times are rounded down, also before
// that date.

namespace tributary::store {

constexpr int64_t kMinutesPerDay = 24 * 60;

constexpr int64_t MinuteOf(UnixNs time) { return time.value / kNsPerMinute - (time.value % kNsPerMinute < 0 ? 1 : 0); }
constexpr Day DayOfMinute(int64_t minute) {
  return Day{static_cast<int32_t>(minute / kMinutesPerDay - (minute % kMinutesPerDay < 0 ? 1 : 0))};
}
constexpr Day DayOf(UnixNs time) { return DayOfMinute(MinuteOf(time)); }

// A slot is ten minutes, counted from 1970-01-01 UTC. Describing a long-lived process once per slot must cost little,
// so slots are not shorter. A query for one minute must not read the processes of a whole day, so slots are not longer.
using Slot = Strong<struct StoreSlotTag, int32_t>;
constexpr int64_t kSlotMinutes = 10;
constexpr int32_t kSlotsPerDay = kMinutesPerDay / kSlotMinutes;
constexpr Slot kNoSlot{INT32_MIN};

constexpr Slot SlotOf(UnixNs time) {
  const int64_t minute = MinuteOf(time);
  return Slot{static_cast<int32_t>(minute / kSlotMinutes - (minute % kSlotMinutes < 0 ? 1 : 0))};
}
constexpr Day DayOf(Slot slot) { return DayOfMinute(slot.value * kSlotMinutes); }
constexpr UnixNs StartOf(Slot slot) { return UnixNs{slot.value * kSlotMinutes * kNsPerMinute}; }

// A minute is closed this long after its end. Then Maintain sums up its samples. A minute is not closed earlier,
// because batches with samples of the minute may arrive late.
constexpr int64_t kMinuteOpenNs = 2 * kNsPerMinute;

// A time of a sample or event is impossible if it is this much later than now.
constexpr int64_t kFutureMaxNs = 10 * kNsPerMinute;

// Converts the times of a batch's samples to unix ns, with the batch's clock pair. ToUnixNs returns the batch's own
// time if the result is impossible: before 2020, more than ten minutes after `now_ns`, or more than a day before the
// batch. If the batch's own time is before 2020 or more than ten minutes after `now_ns`, `now_ns` counts as the batch's
// time. Sets `*clamped` to true if the result is not the time that the node sent.
struct SampleTimes {
  SampleTimes(const ClockPair& clock, int64_t now_ns);
  int64_t ToUnixNs(MonotonicNs time, bool* clamped) const;
  UnixNs batch_time() const { return UnixNs{batch_ns_}; }
  int64_t BootNs() const;  // unix time when CLOCK_MONOTONIC was 0; 0: unknown

 private:
  MonotonicNs monotonic_;
  bool is_sane_;  // the batch's own time is possible
  int64_t batch_ns_, min_ns_, max_ns_;
};

}  // namespace tributary::store
