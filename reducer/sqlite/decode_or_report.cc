#include "reducer/sqlite/decode_or_report.h"

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

namespace tributary::store {

absl::StatusOr<bool> DecodeOrReport(const Statement& row, PieceKind kind, int id_column, int raw_bytes_column,
                                    DamageReports& damage, std::string* raw, absl::FunctionRef<absl::Status()> decode) {
  absl::Status decoded = UnpackColumns(row.Bytes(raw_bytes_column + 1), row.Int(raw_bytes_column), raw);
  if (decoded.ok()) decoded = decode();
  decoded = row.InFile(decoded);
  if (absl::IsDataLoss(decoded)) {
    damage.Report({kind, row.Int(id_column)}, decoded);
    return false;
  }
  RETURN_IF_ERROR(decoded);
  return true;
}

}  // namespace tributary::store
