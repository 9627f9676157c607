#pragma once

#include <algorithm>
#include <cstdint>

#include "base/types.h"
#include "reducer/store/store.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Days before yesterday whose samples may arrive in one shard at the same time. ingest::OldDayTurns enforces it, so
// that a store writer can keep the tries of these days in memory.
constexpr int32_t kOldDaysAtOnce = 2;
// With today and yesterday.
constexpr int32_t kDaysAtOnce = 2 + kOldDaysAtOnce;

// Where a sample goes when it arrives.
enum class SamplePlace : uint8_t {
  kChunk,     // into a chunk of single samples
  kSumsOnly,  // only into the sums of its minute
  kTooOld,    // nowhere: it counts as lost
};

// Decides where samples and process events go, by their age when they arrive. Retention would remove a sample that is
// too old within seconds, and its day with it. So a node with a wrong clock would cost much, and its samples would
// count as stored although they are gone. The limits are those of retention: whole minutes and slots. Pure: a new
// object is made for each batch.
class AgeRules {
 public:
  struct Ages {
    int64_t raw_ns = kNsPerDay;  // maximum age of single samples
    int64_t sum_ns = 7 * kNsPerDay;
    int64_t event_ns = 7 * kNsPerDay;
  };

  // `closed_before`: earlier minutes have their sums. Samples of later minutes always go into chunks, because the sums
  // of these minutes will be made from chunks.
  AgeRules(const Ages& ages, UnixNs now, int64_t closed_before)
      : chunks_from_(MinuteOf(UnixNs{now.value - ages.raw_ns})),
        closed_before_(closed_before),
        sums_from_(MinuteOf(UnixNs{now.value - std::max(ages.raw_ns, ages.sum_ns)})),
        events_from_(SlotOf(UnixNs{now.value - ages.event_ns})) {}

  SamplePlace PlaceOf(UnixNs time) const { return PlaceOfMinute(MinuteOf(time)); }
  SamplePlace PlaceOfMinute(int64_t minute) const {
    if (minute < sums_from_) return SamplePlace::kTooOld;
    return minute < std::min(chunks_from_, closed_before_) ? SamplePlace::kSumsOnly : SamplePlace::kChunk;
  }
  bool TakesEvent(UnixNs time) const { return SlotOf(time) >= events_from_; }
  // Returns true if the time is older than single samples may be.
  bool IsOld(UnixNs time) const { return MinuteOf(time) < chunks_from_; }

 private:
  const int64_t chunks_from_, closed_before_, sums_from_;
  const Slot events_from_;
};

inline AgeRules::Ages AgesOf(const StoreOptions& options) {
  return {.raw_ns = options.raw_age_ns, .sum_ns = options.sum_age_ns, .event_ns = options.event_age_ns};
}

}  // namespace tributary::store
