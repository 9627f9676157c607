#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store_times.h"

namespace tributary::store {

// Collects the process events of one transaction, and writes them as chunks: one for each slot and machine, or more if
// there are more than kEventsPerChunkMax events. Use it on the writer's thread.
class EventWriter {
 public:
  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<EventWriter> Prepare(Database& database, NodeLedger& ledger);

  void Add(int64_t machine, const StoredEvent& event) {
    pending_[{SlotOf(UnixNs{event.time_ns}), machine}].push_back(event);
  }

  // Call Write within a transaction. If the transaction is rolled back, the caller must call Forget.
  absl::Status Write();
  void Forget() { pending_.clear(); }

 private:
  explicit EventWriter(NodeLedger& ledger) : ledger_(&ledger) {}

  NodeLedger* ledger_;
  Statement put_, count_;
  std::map<std::pair<Slot, int64_t>, std::vector<StoredEvent>> pending_;
};

}  // namespace tributary::store
