#include "reducer/sqlite/string_table.h"

#include "base/status.h"

namespace tributary::store {
namespace {

absl::StatusOr<TextHashKey> ReadKey(Database& database) {
  TextHashKey key;
  ASSIGN_OR_RETURN(const int64_t first, database.QueryInt("SELECT value FROM watermark WHERE name = 'string_key_0'"));
  ASSIGN_OR_RETURN(const int64_t second, database.QueryInt("SELECT value FROM watermark WHERE name = 'string_key_1'"));
  return TextHashKey{static_cast<uint64_t>(first), static_cast<uint64_t>(second)};
}

}  // namespace

absl::StatusOr<StringTable> StringTable::Prepare(Database& database, NodeLedger& ledger) {
  StringTable table(ledger);
  ASSIGN_OR_RETURN(table.key_, ReadKey(database));
  ASSIGN_OR_RETURN(table.find_,
                   database.Prepare("SELECT id, last_day, machine FROM string WHERE hash = ? AND text = ?"));
  ASSIGN_OR_RETURN(table.read_, database.Prepare("SELECT last_day, machine, length(text) FROM string WHERE id = ?"));
  ASSIGN_OR_RETURN(table.put_,
                   database.Prepare("INSERT INTO string (hash, text, last_day, machine, id) VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(table.ids_, RowIds::Prepare(database, "string"));
  ASSIGN_OR_RETURN(table.use_,
                   database.Prepare("UPDATE string SET last_day = max(last_day, ?2), machine = iif(machine = ?3, "
                                    "machine, 0) WHERE id = ?1 AND (last_day < ?2 OR machine NOT IN (0, ?3))"));
  return table;
}

absl::StatusOr<StringTable::Row> StringTable::Put(std::string_view text, int64_t machine, Day day) {
  const int64_t hash = StoredTextHash(key_, text);
  ASSIGN_OR_RETURN(const bool found, find_.Bind(hash, text).Step());
  if (found) {
    const int64_t id = find_.Int(0), last_day = find_.Int(1), known_machine = find_.Int(2);
    find_.Reset();
    ASSIGN_OR_RETURN(const uint32_t mended, ids_.Mend(id));
    const Known known{Day{static_cast<int32_t>(last_day)}, known_machine, text.size()};
    RETURN_IF_ERROR(Use(mended, known, machine, day));
    return Row{mended, known_machine == machine ? machine : 0};
  }
  const auto bytes = static_cast<uint64_t>(NodeLedger::BytesOf(text.size()));
  if (machine != 0) {
    ASSIGN_OR_RETURN(const bool has_room, ledger_->HasRoom(machine, bytes));
    if (!has_room) return Row{};
    ledger_->AddDefinitions(machine, bytes);
  }
  ASSIGN_OR_RETURN(const uint32_t no, ids_.New());
  RETURN_IF_ERROR(put_.Bind(hash, text, day.value, machine, no).Run());
  return Row{no, machine};
}

absl::Status StringTable::Use(int64_t id, int64_t machine, Day day) {
  ASSIGN_OR_RETURN(const bool found, read_.Bind(id).Step());
  if (!found) return absl::OkStatus();
  const Known known{Day{static_cast<int32_t>(read_.Int(0))}, read_.Int(1), static_cast<size_t>(read_.Int(2))};
  read_.Reset();
  return Use(id, known, machine, day);
}

absl::Status StringTable::Use(int64_t id, const Known& known, int64_t machine, Day day) {
  if (known.last_day >= day && (known.machine == machine || known.machine == 0)) return absl::OkStatus();
  if (known.last_day < day && known.machine == machine && machine != 0) {
    ledger_->MoveDefinitions(known.last_day, day, machine, NodeLedger::BytesOf(known.text_bytes));
  }
  return use_.Bind(id, day.value, machine).Run();
}

// Takes about 2 µs for each text.
absl::Status ConvertStrings(Database& database) {
  ASSIGN_OR_RETURN(const TextHashKey key, ReadKey(database));
  ASSIGN_OR_RETURN(Statement from, database.Prepare("SELECT id, text, last_day FROM string ORDER BY id"));
  ASSIGN_OR_RETURN(Statement put, database.Prepare("INSERT INTO new_string (id, hash, last_day, machine, text) VALUES "
                                                   "(?, ?, ?, 0, ?)"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, from.Step());
    if (!row) break;
    const std::string_view text = from.Bytes(1);
    RETURN_IF_ERROR(put.Bind(from.Int(0), StoredTextHash(key, text), from.Int(2), text).Run());
  }
  static_assert(NodeLedger::kRowBytes == 56);
  return database.Execute(
      "INSERT INTO node_day SELECT last_day, 0, 0, sum(length(text) + 56), 0, 0 FROM string GROUP BY last_day;"
      "DROP TABLE string;"
      "ALTER TABLE new_string RENAME TO string;"
      "CREATE INDEX string_hash ON string (hash);"
      "CREATE INDEX string_last_day ON string (last_day, machine);");
}

}  // namespace tributary::store
