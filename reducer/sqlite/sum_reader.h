#pragma once

#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sample_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Reads the sums of one shard for one reader: the stored ones of closed minutes, and sums of samples for other minutes.
// Damaged rows are skipped and reported. Use it on one thread.
class SumReader {
 public:
  struct Watermarks {
    int64_t closed_before = 0, raw_from = 0;
    int64_t threads_from = 0;  // stored sums of earlier minutes have no sums of threads
  };
  // All must outlive the object.
  SumReader(Database& database, const Machines& machines, const Watermarks& watermarks, SampleReader& samples,
            DamageReports& damage)
      : database_(&database), machines_(&machines), watermarks_(watermarks), samples_(&samples), damage_(&damage) {}

  // As StoreReader::ScanSums.
  absl::Status Scan(TimeRange range, const ScanFilter& filter, const SumVisitor& visit);
  // As StoreReader::ScanThreadWeights.
  absl::Status ScanThreadWeights(TimeRange range, const ScanFilter& filter, const WeightsVisitor& visit);

 private:
  // The minutes of a range. Stored sums count for [first_sum, last_sum], and samples for the others.
  struct Minutes {
    int64_t first = 0, last = 0, first_sum = 0, last_sum = 0;
  };
  Minutes MinutesOf(TimeRange range) const;  // the range is not empty
  absl::StatusOr<bool> IsGauge(TypeNo type);
  absl::Status ScanRows(int64_t first_minute, int64_t last_minute, const ScanFilter& filter, const SumVisitor& visit);
  absl::Status SumRaw(TimeRange range, int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                      const SumVisitor& visit);
  absl::Status ScanThreadRows(int64_t first_minute, int64_t last_minute, const ScanFilter& filter,
                              const WeightsVisitor& visit);

  Database* database_;
  const Machines* machines_;
  Watermarks watermarks_;
  SampleReader* samples_;
  DamageReports* damage_;
  std::optional<absl::flat_hash_set<TypeNo>> gauges_;  // set at the first use
};

}  // namespace tributary::store
