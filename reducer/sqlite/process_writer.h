#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Gives numbers to processes and threads. Collects the rows of one transaction, and writes them as one piece per slot
// and machine, so that expiry can remove the processes of one machine. Charges each piece to its machine. Use it on the
// writer's thread.
class ProcessWriter {
 public:
  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<ProcessWriter> Prepare(Database& database, NodeLedger& ledger);

  // Return a new number, never 0. After number 2^32 - 1 comes number 1. Rows with the reused numbers have expired long
  // before.
  uint32_t NewProcess() { return New(&next_process_); }
  uint32_t NewThread() { return New(&next_thread_); }

  void Add(Slot slot, const StoredProcess& process) { pending_[{slot, process.machine}].processes.push_back(process); }
  void Add(Slot slot, int64_t machine, const StoredThread& thread) {
    pending_[{slot, machine}].threads.push_back(thread);
  }

  // Call Write within a transaction. If the transaction is rolled back, the caller must call Forget. The numbers of the
  // discarded rows are not reused.
  absl::Status Write();
  void Forget() { pending_.clear(); }

 private:
  explicit ProcessWriter(NodeLedger& ledger) : ledger_(&ledger) {}
  static uint32_t New(uint32_t* next) {
    const uint32_t no = (*next)++;
    if (*next == 0) *next = 1;
    return no;
  }

  NodeLedger* ledger_;
  Statement put_, set_watermark_;
  uint32_t next_process_ = 1, next_thread_ = 1;
  std::map<std::pair<Slot, int64_t>, StoredProcesses> pending_;  // key: slot, machine
};

// For Database::Migrate. Converts the rows of schema 2 into pieces, and then drops their tables.
absl::Status ConvertProcessRows(Database& database);

}  // namespace tributary::store
