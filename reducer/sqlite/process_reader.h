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

// Texts by their ids, each read once. One thread.
class StringReader {
 public:
  // `database` outlives this.
  static absl::StatusOr<StringReader> Prepare(Database& database);
  // "" for an id that no row has. Valid as long as this.
  absl::StatusOr<std::string_view> Get(uint32_t id);

 private:
  Statement find_;
  absl::node_hash_map<uint32_t, std::string> known_;
};

// What is told of the processes and threads of some slots, piece by piece, the latest first: of two descriptions of one
// the first that is met is right. `told`: the last slot of the piece.
using PieceVisitor = absl::FunctionRef<absl::Status(const StoredProcesses& piece, Slot told)>;
absl::Status VisitProcesses(Database& database, Slot first, Slot last, PieceVisitor visit);

}  // namespace tributary::store
