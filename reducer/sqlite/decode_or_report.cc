#include "reducer/sqlite/decode_or_report.h"

#include <string>

#include "base/status.h"
#include "reducer/sqlite/column_codec.h"

namespace tributary::store {

absl::StatusOr<bool> DecodeOrReport(const Statement& row, PieceKind kind, int id_column, int raw_bytes_column,
                                    DamageReports& damage, absl::FunctionRef<absl::Status(std::string_view)> decode) {
  const absl::StatusOr<std::string> raw = UnpackColumns(row.Bytes(raw_bytes_column + 1), row.Int(raw_bytes_column));
  const absl::Status decoded = row.InFile(raw.ok() ? decode(*raw) : raw.status());
  if (absl::IsDataLoss(decoded)) {
    damage.Report({kind, row.Int(id_column)}, decoded);
    return false;
  }
  RETURN_IF_ERROR(decoded);
  return true;
}

}  // namespace tributary::store
