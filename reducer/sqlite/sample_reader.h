#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads the chunks of samples of one shard for one reader. Damaged chunks are skipped and reported. Use it on one
// thread.
class SampleReader {
 public:
  // All must outlive the object. `raw_from`: the watermark.
  SampleReader(Database& database, const Machines& machines, int64_t raw_from, DamageReports& damage)
      : database_(&database), machines_(&machines), raw_from_(raw_from), damage_(&damage) {}

  // Visits the stored samples of the minutes [first_minute, last_minute] that have not expired. Cuts each chunk to
  // `range`. The chunks come in the order of minutes, machines and types.
  absl::Status Scan(TimeRange range, int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                    const SampleVisitor& visit);
  // Visits the weights of the samples that Scan would visit.
  absl::Status ScanThreadWeights(TimeRange range, int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                                 const WeightsVisitor& visit);
  // As StoreReader::ScanCommitted.
  absl::StatusOr<CommittedScan> ScanCommitted(const Cursor& cursor, size_t samples_max, const CommittedVisitor& visit);

 private:
  Database* database_;
  const Machines* machines_;
  int64_t raw_from_;
  DamageReports* damage_;
};

}  // namespace tributary::store
