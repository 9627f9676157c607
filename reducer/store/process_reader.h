#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/store/process_columns.h"
#include "reducer/store/sqlite.h"

namespace tributary::store {

// Texts by their ids, each read once. One thread.
class StringReader {
 public:
  // `database` outlives this.
  static absl::StatusOr<StringReader> Prepare(Database& database);
  // "" for an id that no row has.
  absl::StatusOr<std::string> Get(uint32_t id);

 private:
  Statement find_;
  absl::flat_hash_map<uint32_t, std::string> known_;
};

// What is told of the processes and threads of some slots: each once, as the latest piece says, in the order of pieces.
struct FoundProcess {
  StoredProcess process;
  Slot last;  // of its piece
};
struct FoundProcesses {
  std::vector<FoundProcess> processes;
  std::vector<StoredThread> threads;
};
absl::StatusOr<FoundProcesses> ReadProcesses(Database& database, Slot first, Slot last);

}  // namespace tributary::store
