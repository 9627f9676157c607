#include "reducer/sqlite/row_ids.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/status.h"

namespace tributary::store {

// The sequence contains the highest id, unless the file is damaged. Another id may be damaged and too high.
std::string HighestRowIdSql(std::string_view table) {
  return fmt::format(
      "SELECT coalesce((SELECT seq FROM sqlite_sequence WHERE name = '{0}' AND seq BETWEEN 1 AND {1}), (SELECT max(id) "
      "FROM {0} WHERE id BETWEEN 1 AND {1}), 0)",
      table, kRowIdMax);
}

absl::StatusOr<RowIds> RowIds::Prepare(Database& database, std::string_view table) {
  RowIds ids;
  ids.table_ = table;
  ids.file_ = database.path();
  ASSIGN_OR_RETURN(ids.find_, database.Prepare(fmt::format("SELECT 1 FROM {} WHERE id = ?", table)));
  ASSIGN_OR_RETURN(ids.change_, database.Prepare(fmt::format("UPDATE {} SET id = ?2 WHERE id = ?1", table)));
  ids.database_ = &database;
  return ids;
}

absl::StatusOr<uint32_t> RowIds::New() {
  if (next_ == 0) {
    ASSIGN_OR_RETURN(const int64_t highest, database_->QueryInt(HighestRowIdSql(table_)));
    next_ = highest + 1;
  }
  for (;;) {
    if (next_ > kRowIdMax) next_ = 1;
    const int64_t id = next_++;
    ASSIGN_OR_RETURN(const bool used, find_.Bind(id).Step());
    if (!used) return static_cast<uint32_t>(id);
    find_.Reset();
  }
}

absl::StatusOr<uint32_t> RowIds::Mend(int64_t id) {
  if (const std::optional<uint32_t> fits = ReadRowId(id)) return *fits;
  ASSIGN_OR_RETURN(const uint32_t mended, New());
  RETURN_IF_ERROR(change_.Bind(id, mended).Run());
  LogError(
      "a row had a damaged id and got a new one; run 'tributary check' on the data directory file={} table={} "
      "damaged={} id={}",
      file_, table_, id, mended);
  return mended;
}

}  // namespace tributary::store
