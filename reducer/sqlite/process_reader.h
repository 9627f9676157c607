#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// The names of a shard's machines, by id.
using Machines = absl::flat_hash_map<int64_t, MachineRow>;

// Returns the machine's node id, or "" if no row has this machine.
inline std::string_view NodeIdOf(const Machines& machines, int64_t machine) {
  const auto found = machines.find(machine);
  return found != machines.end() ? std::string_view(found->second.node_id) : std::string_view();
}

// Reads strings by their ids and caches them, so that each is read from the file once. Use it on one thread.
class StringReader {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<StringReader> Prepare(Database& database);
  // Returns "" for an id without a row. The result stays valid until Forget, or until the reader is destroyed.
  absl::StatusOr<std::string_view> Get(uint32_t id);
  size_t cached() const { return known_.size(); }
  size_t cached_bytes() const { return bytes_; }  // of the texts
  void Forget() {
    known_.clear();
    bytes_ = 0;
  }

 private:
  Statement find_;
  absl::node_hash_map<uint32_t, std::string> known_;
  size_t bytes_ = 0;
};

// Visits the pieces that describe processes and threads in the slots [first, last]. Starts with the piece that was
// committed last. If a process or a thread has several descriptions, the latest is valid: the last row about it in the
// first piece that describes it. `last_slot`: the last slot of the piece. Leaves out pieces that have no process of the
// filter's machines. Earlier releases wrote pieces with the processes of all machines.
using PieceVisitor = absl::FunctionRef<absl::Status(const StoredProcesses& piece, Slot last_slot)>;
// With PieceParts::kProcesses, `piece` has no threads. Skips a damaged piece and reports it to `damage`. If `damage` is
// nullptr, a damaged piece is an error.
absl::Status VisitProcesses(Database& database, Slot first, Slot last, const ScanFilter& filter, PieceParts parts,
                            DamageReports* damage, PieceVisitor visit);

// Return the conditions "AND machine IN (…)" and "AND type = …" for a statement's WHERE clause, or "" if a statement
// would be too long. So the caller must also check each row that it reads. The `+` keeps SQLite from choosing another
// index, or from sorting. SQLite reads machine and type from the index on (minute, machine, type), so rows that the
// filter leaves out cost no access to the table.
std::string MachinesSql(const ScanFilter& filter);
std::string FilterSql(const ScanFilter& filter);

}  // namespace tributary::store
