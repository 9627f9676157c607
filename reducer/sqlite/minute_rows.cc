#include "reducer/sqlite/minute_rows.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "reducer/sqlite/decode_or_report.h"
#include "reducer/sqlite/sample_type_table.h"

namespace tributary::store {

absl::StatusOr<MinuteRows> MinuteRows::Open(Database& database, PieceKind kind, int64_t first_minute,
                                            int64_t last_minute, const ScanFilter& filter, DamageReports& damage) {
  ASSIGN_OR_RETURN(Statement rows,
                   database.Prepare(fmt::format("SELECT minute, machine, type, raw_bytes, columns, id FROM {} WHERE "
                                                "minute BETWEEN ? AND ? {} ORDER BY minute, machine, type, id",
                                                TableOf(kind), FilterSql(filter))));
  rows.Bind(first_minute, last_minute);
  return MinuteRows(std::move(rows), kind, filter, damage);
}

TypeNo MinuteRows::type() const { return ReadType(rows_.Int(2)); }

absl::StatusOr<bool> MinuteRows::Next(Decode decode) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, rows_.Step());
    if (!row) return false;
    if (!filter_->Has(MachineNo{machine()}) || !filter_->Has(type())) continue;
    ASSIGN_OR_RETURN(const bool intact,
                     DecodeOrReport(rows_, kind_, 5, 3, *damage_, &raw_, [&] { return decode(raw_); }));
    if (intact) return true;
  }
}

}  // namespace tributary::store
