#pragma once

#include <cstdint>
#include <map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Numbers processes and threads and gathers what one transaction is to tell of them: a piece for each slot. On the
// writer's thread.
class ProcessWriter {
 public:
  // `database` outlives this.
  static absl::StatusOr<ProcessWriter> Prepare(Database& database);

  // Never 0. After four thousand million they begin anew: long after what bore them has expired.
  uint32_t NewProcess() { return New(&next_process_); }
  uint32_t NewThread() { return New(&next_thread_); }

  void Add(Slot slot, const StoredProcess& process) { pending_[slot].processes.push_back(process); }
  void Add(Slot slot, const StoredThread& thread) { pending_[slot].threads.push_back(thread); }

  // Within a transaction. When that is rolled back: Forget. Numbers given meanwhile are not given again.
  absl::Status Write();
  void Forget() { pending_.clear(); }

 private:
  ProcessWriter() = default;
  static uint32_t New(uint32_t* next) {
    const uint32_t no = (*next)++;
    if (*next == 0) *next = 1;
    return no;
  }

  Statement put_, set_watermark_;
  uint32_t next_process_ = 1, next_thread_ = 1;
  std::map<Slot, StoredProcesses> pending_;
};

// Puts a piece for [first, last] into process_chunk.
inline constexpr std::string_view kInsertProcesses =
    "INSERT INTO process_chunk (first_slot, last_slot, raw_bytes, columns) VALUES (?, ?, ?, ?)";
absl::Status InsertProcesses(Statement& insert, Slot first, Slot last, const StoredProcesses& rows);

// For Database::Migrate: the rows of schema 2, which it then drops, as pieces.
absl::Status ConvertProcessRows(Database& database);

}  // namespace tributary::store
