#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/strong.h"
#include "reducer/store/minute_sums.h"

// Processes and threads as the store keeps them: columns (docs/store.md), in pieces that describe what the samples of a
// slot of time refer to. Pure. The decoder checks everything: a corrupt file gives DataLoss, never a wild read.

namespace tributary::store {

// Ten minutes, since 1970-01-01 UTC: long enough that telling of a long-lived process in each costs little, short
// enough that a query for a minute does not read of a day's processes.
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

// In store ids; texts are ids of strings.
struct StoredProcess {
  uint32_t no = 0;
  int64_t machine = 0;
  uint32_t boot = 0;
  int32_t pid = 0, parent = 0;
  int64_t start_time_ns = 0;
  uint32_t exec_sequence = 0;
  uint32_t comm = 0, executable_path = 0, container_id = 0, cgroup_path = 0, attributes = 0;
  uint32_t executable = 0;
};
struct StoredThread {
  uint32_t no = 0, process = 0;
  int32_t tid = 0;
  uint32_t name = 0;
};
struct StoredProcesses {
  std::vector<StoredProcess> processes;
  std::vector<StoredThread> threads;
};

std::string EncodeProcesses(const StoredProcesses& rows);
absl::Status DecodeProcesses(std::string_view bytes, StoredProcesses* out);

}  // namespace tributary::store
