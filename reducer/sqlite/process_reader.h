#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/node_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Reads texts by their ids, each text once. Use it on one thread.
class StringReader {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<StringReader> Prepare(Database& database);
  // Returns "" for an id without a row. The result is valid as long as the reader.
  absl::StatusOr<std::string_view> Get(uint32_t id);

 private:
  Statement find_;
  absl::node_hash_map<uint32_t, std::string> known_;
};

// Visits the pieces that describe the processes and threads of some slots, the latest piece first. If a process or a
// thread has several descriptions, the first one visited is right. `last_slot`: the last slot of the piece.
using PieceVisitor = absl::FunctionRef<absl::Status(const StoredProcesses& piece, Slot last_slot)>;
absl::Status VisitProcesses(Database& database, Slot first, Slot last, PieceVisitor visit);

}  // namespace tributary::store
