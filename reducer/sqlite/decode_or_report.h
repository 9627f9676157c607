#pragma once

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/damage_reports.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Unpacks the columns of a row into `*raw`, and calls `decode`. The row has its raw_bytes in the column
// `raw_bytes_column`, and its columns in the next one. Returns false if they are damaged, after it has reported the row
// to `damage`.
absl::StatusOr<bool> DecodeOrReport(const Statement& row, PieceKind kind, int id_column, int raw_bytes_column,
                                    DamageReports& damage, std::string* raw, absl::FunctionRef<absl::Status()> decode);

}  // namespace tributary::store
