#include "reducer/sqlite/process_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/status.h"
#include "reducer/sqlite/column_codec.h"

namespace tributary::store {
absl::StatusOr<StringReader> StringReader::Prepare(Database& database) {
  StringReader reader;
  ASSIGN_OR_RETURN(reader.find_, database.Prepare("SELECT text FROM string WHERE id = ?"));
  return reader;
}

absl::StatusOr<std::string_view> StringReader::Get(uint32_t id) {
  auto [it, added] = known_.try_emplace(id);
  if (!added) return it->second;
  ASSIGN_OR_RETURN(bool row, find_.Bind(id).Step());
  if (row) {
    it->second = find_.Bytes(0);
    bytes_ += it->second.size();
    find_.Reset();
  }
  return it->second;
}

std::string MachinesSql(const ScanFilter& filter) {
  constexpr size_t kMachinesMax = 10'000;  // about 60 KB; SQLite takes statements of a megabyte
  if (!filter.machines || filter.machines->size() > kMachinesMax) return "";
  std::string list;
  for (const MachineNo machine : *filter.machines) list += fmt::format("{}{}", list.empty() ? "" : ",", machine.value);
  return fmt::format("AND +machine IN ({})", list);
}

// Damaged types are read as type 0.
std::string FilterSql(const ScanFilter& filter) {
  std::string sql = MachinesSql(filter);
  if (filter.type && filter.type->value != 0) sql += fmt::format(" AND +type = {}", filter.type->value);
  return sql;
}

absl::Status VisitProcesses(Database& database, Slot first, Slot last, const ScanFilter& filter, DamageReports* damage,
                            PieceVisitor visit) {
  // Reads the ids first, from the indexes alone: sorting whole rows would copy their columns. A piece that ends after
  // `last` overlaps the range only if it has several slots. There are few such pieces, and they have an index of their
  // own.
  // Pieces of several slots are few, and their index has no machine.
  ScanFilter of_pieces{.machines = filter.machines};
  if (of_pieces.machines) of_pieces.machines->insert(of_pieces.machines->begin(), MachineNo{0});
  ASSIGN_OR_RETURN(
      Statement list,
      database.Prepare(fmt::format("SELECT id FROM process_chunk WHERE last_slot BETWEEN ?1 AND ?2 {0} UNION ALL "
                                   "SELECT id FROM process_chunk WHERE first_slot < last_slot AND last_slot > ?2 AND "
                                   "first_slot <= ?2",
                                   MachinesSql(of_pieces))));
  std::vector<int64_t> ids;
  list.Bind(first.value, last.value);
  for (;;) {
    ASSIGN_OR_RETURN(bool row, list.Step());
    if (!row) break;
    ids.push_back(list.Int(0));
  }
  std::sort(ids.begin(), ids.end(), std::greater<>());
  ASSIGN_OR_RETURN(Statement find,
                   database.Prepare("SELECT raw_bytes, columns, last_slot FROM process_chunk WHERE id = ?"));
  StoredProcesses piece;
  for (int64_t id : ids) {
    ASSIGN_OR_RETURN(bool row, find.Bind(id).Step());
    if (!row) continue;
    const absl::StatusOr<std::string> raw = UnpackColumns(find.Bytes(1), find.Int(0));
    const absl::Status decoded = find.InFile(raw.ok() ? DecodeProcesses(*raw, &piece) : raw.status());
    if (absl::IsDataLoss(decoded) && damage != nullptr) {
      damage->Report({PieceKind::kProcesses, id}, decoded);
      find.Reset();
      continue;
    }
    RETURN_IF_ERROR(decoded);
    const Slot last_slot{static_cast<int32_t>(find.Int(2))};
    find.Reset();
    RETURN_IF_ERROR(visit(piece, last_slot));
  }
  return absl::OkStatus();
}

}  // namespace tributary::store
