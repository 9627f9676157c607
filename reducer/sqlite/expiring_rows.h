#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Deletes the oldest rows of a table, and subtracts their bytes from the ledger. Usually one statement deletes all rows
// of a call. A single damaged page makes this statement fail. Then smaller and smaller parts are deleted. Rows that
// cannot be deleted are left and reported. Later data must expire as if these rows did not exist.
//
// Each attempt is a transaction of its own: once a statement has met a damaged page, SQLite refuses all further changes
// in the same transaction. Use it outside of transactions, on the writer's thread.
class ExpiringRows {
 public:
  static constexpr int64_t kNone = INT64_MAX;
  // When deleting in parts, a call tries up to this many rows for each row that it may delete.
  static constexpr int64_t kTriesPerRow = 4;
  static constexpr int kPartsMax = 128;  // of one call: each is a transaction

  struct Table {
    PieceKind kind;
    std::string_view time;      // the column that the rows are removed by
    Day (*day_of)(int64_t at);  // converts a value of this column
  };
  // All must outlive the object. If `damage` is nullptr, a row that cannot be deleted is an error.
  static absl::StatusOr<ExpiringRows> Prepare(Database& database, NodeLedger& ledger, const Table& table,
                                              DamageReports* damage);

  // Returns the time of the oldest row, or kNone. Does not see rows before `cleared_before`.
  absl::StatusOr<int64_t> Oldest();
  // Deletes at most `rows_max` rows with a time before `before`. Calls `begin` at the start of each transaction.
  // DataLoss: damage is in the way, and a further call may delete more. The caller should wait for some time.
  absl::Status Delete(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin);
  // All rows before this time that are left cannot be deleted. INT64_MIN: no such row is known.
  int64_t cleared_before() const { return cleared_before_; }

 private:
  ExpiringRows(Database& database, NodeLedger& ledger, const Table& table, DamageReports* damage)
      : database_(&database), ledger_(&ledger), table_(table), damage_(damage) {}
  absl::Status DeleteAll(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin);
  absl::Status DeleteInParts(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin);
  absl::Status DeletePart(std::span<const int64_t> ids, absl::FunctionRef<absl::Status()> begin);
  absl::StatusOr<std::vector<int64_t>> List(int64_t before, int64_t rows_max);
  absl::Status Run(Statement& statement);

  Database* database_;
  NodeLedger* ledger_;
  Table table_;
  DamageReports* damage_;
  Statement oldest_, delete_all_, list_, delete_one_;
  bool in_parts_ = false;  // the last call has left rows
  int64_t cleared_before_ = INT64_MIN;
};

}  // namespace tributary::store
