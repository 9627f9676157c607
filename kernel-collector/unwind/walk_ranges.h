#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/metrics.h"
#include "kernel-collector/processes/mapping_table.h"
#include "kernel-collector/unwind/range_allocator.h"
#include "kernel-collector/unwind/retire_queue.h"
#include "kernel-collector/unwind/unwind_tables.h"

namespace tributary {

// A mapping list as the walk in the kernel reads it: shared by the processes that have that list. Destroyed, it gives
// its room back after a grace period.
struct WalkRange {
  uint32_t number = 0;  // trib_process.table
  uint32_t first = 0, count = 0;
  MonotonicNs known_at;                            // when the newest of its mappings was learned
  std::shared_ptr<const MappingTable::List> list;  // held, so that its address stays its own
  std::vector<CodeFilePtr> unread;                 // left out: not read yet
  std::vector<CodeFilePtr> failed;                 // by frame pointers, as long as they cannot be read
  std::optional<MonotonicNs> refused_at;           // an executable found no page entries
  std::vector<uint32_t> tables;                    // UnwindTables::Reserve
  uint32_t users = 0;
};

// Builds them, and finds room for them. Loop thread only.
class WalkRanges {
 public:
  static constexpr int64_t kRefusedRetryNs = kNsPerMinute;

  WalkRanges(UnwindMaps& maps, UnwindTables& tables, Executor& executor, Metrics& metrics);
  ~WalkRanges();

  // Null: no room; some may come free later.
  std::unique_ptr<WalkRange> Build(std::shared_ptr<const MappingTable::List> list, MonotonicNs now);
  // No process in the kernel names it any more.
  void Retire(std::unique_ptr<WalkRange> range);
  // Whether building it anew would give the same.
  static bool Current(const WalkRange& range, MonotonicNs now);

  // Mappings whose room comes free after a grace period, which Flush begins.
  uint32_t retiring() const;
  void Flush();

 private:
  struct State;
  class Builder;

  std::shared_ptr<State> state_;
  uint32_t last_number_ = 0;
};

}  // namespace tributary
