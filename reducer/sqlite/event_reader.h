#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/event_columns.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads the process events of a shard's file, as StoreReader describes it. Use it on one thread.
class EventReader {
 public:
  // All must outlive the object. Damaged chunks are skipped and reported to `damage`. If it is nullptr, they are
  // errors.
  static absl::StatusOr<EventReader> Prepare(Database& database, const Machines& machines, DamageReports* damage);

  absl::Status Scan(TimeRange range, const ScanFilter& filter, const EventVisitor& visit);
  absl::StatusOr<int64_t> ScanCommitted(int64_t cursor, size_t events_max, const EventVisitor& visit);
  // As StoreReader::CountPassedEvents.
  absl::StatusOr<uint64_t> CountPassed(int64_t cursor);

 private:
  EventReader(Database& database, const Machines& machines, DamageReports* damage, StringReader strings)
      : database_(&database), machines_(&machines), damage_(damage), strings_(std::move(strings)) {}
  // Visits those events of the row's chunk that are in `range`. The row's columns must be id, machine, raw_bytes,
  // columns.
  absl::Status Visit(const Statement& row, TimeRange range, const EventVisitor& visit);

  Database* database_;
  const Machines* machines_;
  DamageReports* damage_;
  StringReader strings_;
  std::vector<StoredEvent> events_;  // of the chunk that is visited
};

}  // namespace tributary::store
