#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/runtimes/runtime_slots.h"
#include "kernel-collector/unwind/range_allocator.h"
#include "kernel-collector/unwind/retire_queue.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// A mapping list in the form that the walk in the kernel reads. All processes with the same list share one WalkRange.
struct WalkRange {
  uint32_t number = 0;  // trib_process.table
  uint32_t first = 0, count = 0;
  MonotonicNs known_at;                            // when the newest mapping was learned
  std::shared_ptr<const MappingTable::List> list;  // held, so that its address is not reused
  std::vector<CodeFilePtr> unread;                 // files that are not read yet; their mappings are left out
  std::vector<CodeFilePtr> failed;                 // files that cannot be read; their code is walked by frame pointers
  std::optional<MonotonicNs> refused_at;           // when an executable got no page entries, or a runtime no number
  std::vector<uint32_t> tables;                    // UnwindTables::Reserve
  std::vector<RuntimeSlots::Number> runtimes;      // RuntimeSlots::Use
  uint32_t users = 0;
};

// Builds ranges and allocates space for them. Loop thread only.
class WalkRanges {
 public:
  static constexpr int64_t kRefusedRetryNs = kNsPerMinute;

  WalkRanges(UnwindMaps& maps, UnwindTables& tables, RuntimeSlots& runtimes, Executor& executor, Metrics& metrics);
  ~WalkRanges();

  // ResourceExhausted: the kernel's map has no space for the list. Space becomes free after ranges were retired.
  // Unavailable: the system has no memory to write the list. It may have memory later; retiring ranges does not help.
  absl::StatusOr<std::unique_ptr<WalkRange>> Build(std::shared_ptr<const MappingTable::List> list, MonotonicNs now);
  // Call it when no published process uses the range any more. The range's space is freed after a grace period
  // (UnwindMaps::WaitGrace).
  void Retire(std::unique_ptr<WalkRange> range);
  // Returns whether a new build of the same list would have the same result.
  static bool Current(const WalkRange& range, MonotonicNs now);

  // Returns the number of mappings in retired ranges whose space is not free yet. Flush begins the grace period that
  // frees it.
  uint32_t retiring() const;
  void Flush();

 private:
  struct State;
  class Builder;

  std::shared_ptr<State> state_;
  uint32_t last_number_ = 0;
};

}  // namespace tributary
