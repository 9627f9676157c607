#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/statusor.h"
#include "base/metrics.h"
#include "symbols/frame_symbolizer.h"
#include "symbols/packed_table.h"

namespace tributary {

// The symbol tables with which a node names frames. If the tables have more than `bytes_max` bytes, the tables that
// were not used for the longest time are dropped. They must be made again when they are needed. A table is in a memory
// file that is mapped into memory. So only the pages that look-ups have read count as resident memory of this process;
// the memory of its cgroup contains all of them. Used by one thread.
class NameTables {
 public:
  static constexpr size_t kAbsentMax = 65'536;

  NameTables(uint64_t bytes_max, Metrics& metrics);

  // Returns the table, or nullptr.
  std::shared_ptr<const SymbolTable> Find(const ExecutableId& id);
  // Returns true if there is no table, and none was asked for in vain. The caller should then ask for it.
  bool IsWanted(const ExecutableId& id) const { return !tables_.contains(id) && !absent_.contains(id); }

  // Decodes the table and stores it. Takes tens of milliseconds for a large table.
  void Add(const ExecutableId& id, const PackedTable& packed);
  // There is no table for the executable: IsWanted returns false from now on.
  void AddAbsent(const ExecutableId& id);

  uint64_t bytes() const { return bytes_; }

 private:
  struct Known {
    std::shared_ptr<const SymbolTable> table;
    std::list<ExecutableId>::iterator use;
  };
  absl::StatusOr<std::shared_ptr<const SymbolTable>> Open(const PackedTable& packed) const;

  const uint64_t bytes_max_;
  uint64_t bytes_ = 0;
  absl::flat_hash_map<ExecutableId, Known> tables_;
  std::list<ExecutableId> uses_;  // the last used first
  absl::flat_hash_set<ExecutableId> absent_;
  Counter &added_, &evicted_, &refused_;
  Gauge& bytes_gauge_;
};

}  // namespace tributary
