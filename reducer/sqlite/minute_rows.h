#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/process_reader.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// The rows of the tables of samples or sums, in the order of minutes, machines and types, without the rows that a
// filter leaves out. Damaged rows are skipped and reported.
class MinuteRows {
 public:
  // `kind`: kSamples or kSums. The minutes are [first_minute, last_minute]. `database`, `filter` and `damage` must
  // outlive the object.
  static absl::StatusOr<MinuteRows> Open(Database& database, PieceKind kind, int64_t first_minute, int64_t last_minute,
                                         const ScanFilter& filter, DamageReports& damage);

  // Moves to the next row, and calls `decode` with its columns. If `decode` returns DataLoss, the row is damaged, and
  // the search goes on. Returns false after the last row.
  using Decode = absl::FunctionRef<absl::Status(std::string_view columns)>;
  absl::StatusOr<bool> Next(Decode decode);

  // Of the row. Also valid while `decode` runs.
  int64_t minute() const { return rows_.Int(0); }
  int64_t machine() const { return rows_.Int(1); }
  TypeNo type() const;

 private:
  MinuteRows(Statement rows, PieceKind kind, const ScanFilter& filter, DamageReports& damage)
      : rows_(std::move(rows)), kind_(kind), filter_(&filter), damage_(&damage) {}

  Statement rows_;
  PieceKind kind_;
  const ScanFilter* filter_;
  DamageReports* damage_;
  std::string raw_;
};

}  // namespace tributary::store
