#include "reducer/sqlite/expiring_rows.h"

#include <fmt/format.h>

#include <string>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"

namespace tributary::store {

absl::StatusOr<ExpiringRows> ExpiringRows::Prepare(Database& database, NodeLedger& ledger, const Table& table,
                                                   DamageReports* damage) {
  ExpiringRows rows(database, ledger, table, damage);
  const std::string_view name = TableOf(table.kind);
  const std::string list = fmt::format("SELECT id FROM {0} WHERE {1} < ? ORDER BY {1} LIMIT ?", name, table.time);
  const std::string removed = fmt::format("RETURNING machine, {}, length(columns)", table.time);
  ASSIGN_OR_RETURN(rows.oldest_,
                   database.Prepare(fmt::format("SELECT min({0}) FROM {1} WHERE {0} >= ?", table.time, name)));
  ASSIGN_OR_RETURN(rows.delete_all_,
                   database.Prepare(fmt::format("DELETE FROM {} WHERE id IN ({}) {}", name, list, removed)));
  ASSIGN_OR_RETURN(rows.list_, database.Prepare(list));
  ASSIGN_OR_RETURN(rows.delete_one_, database.Prepare(fmt::format("DELETE FROM {} WHERE id = ? {}", name, removed)));
  return rows;
}

absl::StatusOr<int64_t> ExpiringRows::Oldest() {
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, oldest_.Bind(cleared_before_).Step());
  const int64_t oldest = oldest_.IsNull(0) ? kNone : oldest_.Int(0);
  oldest_.Reset();
  return oldest;
}

absl::Status ExpiringRows::Delete(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin) {
  absl::Status status;
  if (!in_parts_) {
    status = DeleteAll(before, rows_max, begin);
    if (!absl::IsDataLoss(status) || damage_ == nullptr) return status;
  }
  return DeleteInParts(before, rows_max, begin);
}

absl::Status ExpiringRows::DeleteAll(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin) {
  const absl::Cleanup rollback = [this] { ledger_->Rollback(); };  // without effect after the commit
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  RETURN_IF_ERROR(begin());
  RETURN_IF_ERROR(Run(delete_all_.Bind(before, rows_max)));
  return ledger_->Commit(transaction);
}

absl::Status ExpiringRows::DeletePart(std::span<const int64_t> ids, absl::FunctionRef<absl::Status()> begin) {
  const absl::Cleanup rollback = [this] { ledger_->Rollback(); };
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  RETURN_IF_ERROR(begin());
  for (const int64_t id : ids) RETURN_IF_ERROR(Run(delete_one_.Bind(id)));
  return ledger_->Commit(transaction);
}

// Halves each part that cannot be deleted, until it is a single row.
absl::Status ExpiringRows::DeleteInParts(int64_t before, int64_t rows_max, absl::FunctionRef<absl::Status()> begin) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, List(before, rows_max * kTriesPerRow));
  std::vector<std::span<const int64_t>> parts;  // that must still be deleted, the oldest last
  if (!ids.empty()) parts.emplace_back(ids);
  int64_t deleted = 0, damaged = 0;
  for (int tries = 0; !parts.empty() && deleted < rows_max && tries < kPartsMax; ++tries) {
    std::span<const int64_t> part = parts.back();
    parts.pop_back();
    const auto deleted_max = static_cast<size_t>(rows_max - deleted);
    if (part.size() > deleted_max) {
      parts.push_back(part.subspan(deleted_max));
      part = part.first(deleted_max);
    }
    const absl::Status status = DeletePart(part, begin);
    if (status.ok()) {
      deleted += static_cast<int64_t>(part.size());
    } else if (!absl::IsDataLoss(status)) {
      return status;
    } else if (part.size() == 1) {
      damage_->Report({table_.kind, part[0]}, status);
      ++damaged;
    } else {
      parts.push_back(part.subspan(part.size() / 2));
      parts.push_back(part.first(part.size() / 2));
    }
  }
  in_parts_ = damaged > 0 || !parts.empty();
  const bool listed_all = static_cast<int64_t>(ids.size()) < rows_max * kTriesPerRow;
  if (damaged > 0 && parts.empty() && listed_all) cleared_before_ = before;
  if (!parts.empty() && deleted < rows_max) {
    return Error(absl::StatusCode::kDataLoss, "deleting rows between damaged ones takes several attempts");
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<int64_t>> ExpiringRows::List(int64_t before, int64_t rows_max) {
  std::vector<int64_t> ids;
  list_.Bind(before, rows_max);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, list_.Step());
    if (!row) return ids;
    ids.push_back(list_.Int(0));
  }
}

absl::Status ExpiringRows::Run(Statement& statement) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    ledger_->AddData(table_.day_of(statement.Int(1)), statement.Int(0),
                     -NodeLedger::BytesOf(static_cast<uint64_t>(statement.Int(2))));
  }
}

}  // namespace tributary::store
