#include "reducer/symbolizer/symbol_database.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tributary {
namespace {

constexpr std::string_view kSchema = R"sql(
CREATE TABLE symbol_table (
  id_kind INTEGER NOT NULL,       -- ExecutableIdKind
  id BLOB NOT NULL,
  source INTEGER NOT NULL,        -- SymbolSource
  symbols INTEGER NOT NULL,
  raw_bytes INTEGER NOT NULL,
  stored_bytes INTEGER NOT NULL,
  last_used INTEGER NOT NULL,     -- unix ns
  encoded BLOB NOT NULL,          -- zstd; last, so that listing rows does not walk it
  PRIMARY KEY (id_kind, id)
);
)sql";

int64_t KindOf(const ExecutableId& id) { return static_cast<int64_t>(id.kind()); }

}  // namespace

absl::StatusOr<SymbolDatabase> SymbolDatabase::Open(const std::string& path) {
  ASSIGN_OR_RETURN(store::Database opened, store::Database::Open(path, store::Database::Mode::kReadWrite));
  SymbolDatabase database(std::move(opened));
  store::Database& db = database.database_;
  // NORMAL: a power cut may lose the newest tables, never the file; nodes are asked for them again.
  RETURN_IF_ERROR(db.Execute("PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL;"));
  RETURN_IF_ERROR(db.Migrate({{kSchema}}));
  ASSIGN_OR_RETURN(database.put_, db.Prepare("INSERT OR REPLACE INTO symbol_table VALUES (?,?,?,?,?,?,?,?)"));
  ASSIGN_OR_RETURN(database.load_, db.Prepare("SELECT encoded FROM symbol_table WHERE id_kind=? AND id=?"));
  ASSIGN_OR_RETURN(database.touch_,
                   db.Prepare("UPDATE symbol_table SET last_used=MAX(last_used,?) WHERE id_kind=? AND id=?"));
  ASSIGN_OR_RETURN(database.delete_, db.Prepare("DELETE FROM symbol_table WHERE id_kind=? AND id=?"));
  return database;
}

absl::StatusOr<std::vector<SymbolDatabase::Row>> SymbolDatabase::List() {
  ASSIGN_OR_RETURN(store::Statement list,
                   database_.Prepare("SELECT id_kind, id, source, symbols, raw_bytes, stored_bytes, last_used "
                                     "FROM symbol_table ORDER BY id_kind, id"));
  std::vector<Row> rows;
  while (true) {
    ASSIGN_OR_RETURN(bool more, list.Step());
    if (!more) return rows;
    int64_t kind = list.Int(0);
    if (kind <= 0 || kind > UINT8_MAX) continue;
    std::optional<ExecutableId> id = ExecutableId::Make(static_cast<ExecutableIdKind>(kind), list.Bytes(1));
    if (!id) continue;
    rows.push_back(Row{.id = *id,
                       .source = static_cast<SymbolSource>(list.Int(2)),
                       .symbols = static_cast<uint64_t>(list.Int(3)),
                       .raw_bytes = static_cast<uint64_t>(list.Int(4)),
                       .stored_bytes = static_cast<uint64_t>(list.Int(5)),
                       .last_used = UnixNs{list.Int(6)}});
  }
}

absl::Status SymbolDatabase::Put(const Row& row, std::string_view blob) {
  return put_
      .Bind(KindOf(row.id), row.id.view(), static_cast<int64_t>(row.source), row.symbols, row.raw_bytes,
            row.stored_bytes, row.last_used.value, blob)
      .Run();
}

absl::StatusOr<std::string> SymbolDatabase::LoadBlob(const ExecutableId& id) {
  ASSIGN_OR_RETURN(bool found, load_.Bind(KindOf(id), id.view()).Step());
  if (!found) return Error(absl::StatusCode::kNotFound, "no symbol table of " + id.ToString());
  std::string blob(load_.Bytes(0));
  load_.Reset();
  return blob;
}

absl::Status SymbolDatabase::SetLastUsed(const ExecutableId& id, UnixNs time) {
  return touch_.Bind(time.value, KindOf(id), id.view()).Run();
}

absl::Status SymbolDatabase::Delete(const std::vector<ExecutableId>& ids) {
  {
    ASSIGN_OR_RETURN(store::Transaction transaction, store::Transaction::Begin(database_));
    for (const ExecutableId& id : ids) RETURN_IF_ERROR(delete_.Bind(KindOf(id), id.view()).Run());
    RETURN_IF_ERROR(transaction.Commit());
  }
  return database_.Execute("PRAGMA incremental_vacuum");
}

}  // namespace tributary
