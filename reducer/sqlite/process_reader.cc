#include "reducer/sqlite/process_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"

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

namespace {

// Returns the ids of the pieces, the newest first. Reads them from the indexes alone: sorting whole rows would copy
// their columns. A piece that ends after `last` overlaps the range only if it has several slots. There are few such
// pieces, and they have an index of their own, which has no machine.
absl::StatusOr<std::vector<int64_t>> ListPieces(Database& database, Slot first, Slot last, const ScanFilter& filter) {
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
  return ids;
}

// Calls `visit` for each piece with one of these ids: its id, raw_bytes, columns and last_slot. The ids are in falling
// order. Reads pieces whose ids follow each other with one statement, which takes a third of the time of one statement
// for each piece. Reads no other piece: it may be damaged.
absl::Status VisitRows(Database& database, std::span<const int64_t> ids,
                       absl::FunctionRef<absl::Status(const Statement& row)> visit) {
  ASSIGN_OR_RETURN(Statement read,
                   database.Prepare("SELECT id, raw_bytes, columns, last_slot FROM process_chunk WHERE id BETWEEN ? "
                                    "AND ? ORDER BY id DESC"));
  const auto distance = [](int64_t from, int64_t to) {
    return static_cast<uint64_t>(to) - static_cast<uint64_t>(from);
  };
  for (size_t begin = 0, end = 0; begin < ids.size(); begin = end) {
    end = begin + 1;
    while (end < ids.size() && distance(ids[end], ids[end - 1]) <= 1) ++end;
    read.Bind(ids[end - 1], ids[begin]);
    for (;;) {
      ASSIGN_OR_RETURN(const bool row, read.Step());
      if (!row) break;
      RETURN_IF_ERROR(visit(read));
    }
  }
  return absl::OkStatus();
}

// A damaged row may have any slot. The times of slots up to this one have 64 bits.
constexpr int64_t kSlotMax = INT64_MAX / (kSlotMinutes * kNsPerMinute);

}  // namespace

absl::Status VisitProcesses(Database& database, Slot first, Slot last, const ScanFilter& filter, PieceParts parts,
                            DamageReports* damage, PieceVisitor visit) {
  ASSIGN_OR_RETURN(const std::vector<int64_t> ids, ListPieces(database, first, last, filter));
  StoredProcesses piece;
  std::string raw;
  return VisitRows(database, ids, [&](const Statement& row) -> absl::Status {
    absl::Status decoded = UnpackColumns(row.Bytes(2), row.Int(1), &raw);
    if (decoded.ok()) decoded = DecodeProcesses(raw, &piece, parts);
    decoded = row.InFile(decoded);
    if (absl::IsDataLoss(decoded) && damage != nullptr) {
      damage->Report({PieceKind::kProcesses, row.Int(0)}, decoded);
      return absl::OkStatus();
    }
    RETURN_IF_ERROR(decoded);
    return visit(piece, Slot{static_cast<int32_t>(std::clamp<int64_t>(row.Int(3), 0, kSlotMax))});
  });
}

}  // namespace tributary::store
