#pragma once

#include <cstdint>

#include "base/strong.h"
#include "base/types.h"
#include "profile/batch.h"
#include "reducer/store/store.h"

// The units of time that stores share. Samples are summed by minutes, processes are described in slots, and each day
// has a trie. All units count from 1970-01-01 UTC and round down, also before that date.

namespace tributary::store {

constexpr int64_t kMinutesPerDay = 24 * 60;

constexpr int64_t MinuteOf(UnixNs time) { return time.value / kNsPerMinute - (time.value % kNsPerMinute < 0 ? 1 : 0); }
constexpr Day DayOfMinute(int64_t minute) {
  return Day{static_cast<int32_t>(minute / kMinutesPerDay - (minute % kMinutesPerDay < 0 ? 1 : 0))};
}
constexpr Day DayOf(UnixNs time) { return DayOfMinute(MinuteOf(time)); }

// A slot is ten minutes, counted from 1970-01-01 UTC. It is long enough that it costs little to describe a long-lived
// process in each slot. It is short enough that a query for a minute does not read the processes of a whole day.
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

// A minute is closed this long after its end, because batches may still be on their way.
constexpr int64_t kMinuteOpenNs = 2 * kNsPerMinute;

// Converts the time of a sample to unix ns, with the clocks of its batch. Uses the batch's own time if the result makes
// no sense: before 2020, more than an hour after `now_ns`, or more than a day before the batch. Uses `now_ns` if the
// batch's own time makes no sense either.
struct SampleTimes {
  SampleTimes(const ClockPair& clock, int64_t now_ns);
  int64_t ToUnixNs(MonotonicNs time, bool* clamped) const;
  int64_t BootNs() const;  // unix time when CLOCK_MONOTONIC was 0; 0 if the result makes no sense

 private:
  MonotonicNs monotonic_;
  int64_t batch_ns_, min_ns_, max_ns_;
};

}  // namespace tributary::store
