#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/process_numbers.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Collects the processes and threads of one transaction, and writes them as one piece per slot and machine, so that
// expiry can remove the processes of one machine. Charges each piece to its machine. Use it on the writer's thread.
class ProcessWriter {
 public:
  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<ProcessWriter> Prepare(Database& database, NodeLedger& ledger, uint32_t number_age_max);

  ProcessNumbers& numbers() { return numbers_; }

  void Add(Slot slot, const StoredProcess& process) {
    numbers_.Use(NumberKind::kProcess, DayOf(slot), process.no);
    pending_[{slot, process.machine}].processes.push_back(process);
  }
  void Add(Slot slot, int64_t machine, const StoredThread& thread) {
    numbers_.Use(NumberKind::kThread, DayOf(slot), thread.no);
    pending_[{slot, machine}].threads.push_back(thread);
  }

  // Call Write within a transaction. If the transaction is rolled back, the caller must call Forget.
  absl::Status Write();
  void Forget() {
    pending_.clear();
    numbers_.Rollback();
  }

 private:
  ProcessWriter(NodeLedger& ledger, ProcessNumbers numbers) : ledger_(&ledger), numbers_(std::move(numbers)) {}

  NodeLedger* ledger_;
  ProcessNumbers numbers_;
  Statement put_;
  std::map<std::pair<Slot, int64_t>, StoredProcesses> pending_;  // key: slot, machine
};

// For Database::Migrate. Converts the rows of schema 2 into pieces, and then drops their tables.
absl::Status ConvertProcessRows(Database& database);

}  // namespace tributary::store
