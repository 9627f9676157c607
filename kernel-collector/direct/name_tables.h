#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "kernel-collector/direct/request_pauses.h"
#include "symbols/frame_symbolizer.h"
#include "symbols/packed_table.h"

namespace tributary {

// The symbol tables with which a node names frames. If the tables take more than `bytes_max` bytes, or are more than
// kTablesMax, the tables that were not used for the longest time are dropped. They must be made again when they are
// needed. A table that takes more than a quarter of `bytes_max` is refused, so that it does not displace most others. A
// table is in a memory file that is mapped into memory. So only the pages that look-ups have read lately count as
// resident memory of this process; the memory of its cgroup contains all of them. Used by one thread.
class NameTables {
 public:
  static constexpr size_t kTablesMax = 8192;
  static constexpr size_t kResidentBytesMax = 3u << 20;
  static constexpr uint64_t kTableOverhead = 1024;  // bytes: objects of this process and the kernel for each table

  // `clock` must outlive this object.
  NameTables(uint64_t bytes_max, const Clock& clock, Metrics& metrics);

  // Returns the table, or nullptr.
  std::shared_ptr<const SymbolTable> Find(const ExecutableId& id);
  // Returns true if there is no table, and it was not asked for in vain or dropped a short time ago (RequestPauses).
  // The caller should then ask for it.
  bool IsWanted(const ExecutableId& id) const {
    return !tables_.contains(id) && !pauses_.IsPaused(id, clock_.Monotonic());
  }

  // Unmaps the pages that look-ups have read if they may be more than kResidentBytesMax. The next look-up maps its
  // pages again, 16 at once, and text that an earlier look-up has returned stays valid. Without this, nearly all pages
  // of a table would soon be resident. Call it after each look-up: it costs 0.2 µs.
  void LimitPages();
  // Unmaps these pages after the last look-up. Later look-ups begin with Find.
  void EndLookups();

  // Stores the table, which is encoded or in flat form (docs/symbol-table.md). Takes about 10 ms for a large table.
  void Add(const ExecutableId& id, const PackedTable& packed);
  // There is no table for the executable: IsWanted returns false for some time, which depends on the reason.
  void AddAbsent(const ExecutableId& id, absl::StatusCode why) { pauses_.OnFailure(id, why, clock_.Monotonic()); }

  // The memory that the tables take: whole pages, and kTableOverhead for each table.
  uint64_t bytes() const { return bytes_; }
  size_t size() const { return tables_.size(); }

 private:
  struct Known {
    std::shared_ptr<const SymbolTable> table;
    std::list<ExecutableId>::iterator use;
    bool is_read = false;  // since EndLookups
  };
  absl::StatusOr<std::shared_ptr<const SymbolTable>> Open(const PackedTable& packed) const;
  void ReleasePages();
  void DropOldest(MonotonicNs now);

  const uint64_t bytes_max_;
  const Clock& clock_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<ExecutableId, Known> tables_;
  std::list<ExecutableId> uses_;  // the last used first
  int64_t faults_ = 0;            // of this thread, when pages were released
  RequestPauses pauses_;
  Counter &added_, &evicted_, &refused_;
  Gauge& bytes_gauge_;
};

}  // namespace tributary
