#include "reducer/sqlite/sqlite_entity_store.h"

#include <fmt/format.h>

#include "base/status.h"
#include "embedded/sql_metadata_0001.h"

namespace tributary {
namespace {

// No commit waits for the disk, because metadata that a power cut destroys is sent again.
constexpr std::string_view kSettings =
    "PRAGMA auto_vacuum = INCREMENTAL;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA journal_size_limit = 16777216;"
    "PRAGMA cache_size = -4096;";
// The number of rows that Expire removes at a time: some milliseconds.
constexpr int kExpireRowsMax = 5'000;

absl::StatusOr<store::Database> OpenWriter(const std::string& path) {
  ASSIGN_OR_RETURN(store::Database database, store::Database::Open(path, store::Database::Mode::kReadWrite));
  RETURN_IF_ERROR(database.Execute(kSettings));
  RETURN_IF_ERROR(database.Migrate({{embedded::sql_metadata_0001()}}));
  RETURN_IF_ERROR(database.QuickCheck());  // finds damage now, while the file can still be replaced
  return database;
}

EntityTimeline::State StateOf(const store::Statement& row, EntityKind kind, std::string_view id, int begins) {
  Entity entity{.kind = kind,
                .id = std::string(id),
                .from = UnixNs{row.Int(begins)},
                .attributes = DecodeAttributes(row.Bytes(begins + 3))};
  return {entity.from, UnixNs{row.Int(begins + 1)}, std::make_shared<const Entity>(std::move(entity))};
}

}  // namespace

absl::StatusOr<std::unique_ptr<EntityStore>> SqliteEntityStore::Open(const std::string& directory, uint64_t bytes_max) {
  const std::string path = directory + "/metadata.db";
  ASSIGN_OR_RETURN(store::Database writer, store::OpenOrBeginAnew(path, "metadata", OpenWriter));
  ASSIGN_OR_RETURN(store::Database reader, store::Database::Open(path, store::Database::Mode::kReadOnly));
  std::unique_ptr<SqliteEntityStore> made(new SqliteEntityStore(std::move(writer), std::move(reader), bytes_max));
  RETURN_IF_ERROR(made->Prepare());
  return made;
}

absl::Status SqliteEntityStore::Prepare() {
  ASSIGN_OR_RETURN(known_, writer_.Prepare("SELECT count(*), max(used) FROM state WHERE cluster = ? AND teller = ? AND "
                                           "kind = ? AND id = ?"));
  ASSIGN_OR_RETURN(remove_, writer_.Prepare("DELETE FROM state WHERE cluster = ? AND teller = ? AND kind = ? AND "
                                            "id = ? AND begins >= ?"));
  ASSIGN_OR_RETURN(insert_, writer_.Prepare("INSERT INTO state (cluster, teller, kind, id, begins, ends, used, "
                                            "attributes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(mark_, writer_.Prepare("UPDATE state SET used = 1 WHERE cluster = ? AND teller = ? AND kind = ? AND "
                                          "id = ? AND used = 0"));
  ASSIGN_OR_RETURN(find_, reader_.Prepare("SELECT begins, ends, used, attributes FROM state WHERE cluster = ? AND "
                                          "teller = ? AND kind = ? AND id = ? ORDER BY begins"));
  return absl::OkStatus();
}

absl::Status SqliteEntityStore::Save(std::span<const Row> rows) {
  ASSIGN_OR_RETURN(store::Transaction transaction, store::Transaction::Begin(writer_));
  for (const Row& row : rows) RETURN_IF_ERROR(SaveRow(row));
  return transaction.Commit();
}

absl::Status SqliteEntityStore::SaveRow(const Row& row) {
  const int cluster = row.sender.is_cluster ? 1 : 0;
  const auto kind = static_cast<uint8_t>(row.kind);
  bool used = row.used;
  if (!row.states.empty()) {
    ASSIGN_OR_RETURN(const bool any, known_.Bind(cluster, row.sender.id, kind, row.id).Step());
    const bool known = any && known_.Int(0) > 0;
    used |= any && known_.Int(1) != 0;
    known_.Reset();
    if (known && row.ended_unseen) return absl::OkStatus();
    // Removes the states that begin at or after the first new state. So a state that begins at kTimeBegin replaces all
    // rows of its entity.
    RETURN_IF_ERROR(remove_.Bind(cluster, row.sender.id, kind, row.id, row.states.front().from.value).Run());
  }
  for (const EntityTimeline::State& state : row.states) {
    const std::string attributes = EncodeAttributes(state.entity->attributes, SIZE_MAX, nullptr);
    RETURN_IF_ERROR(
        insert_.Bind(cluster, row.sender.id, kind, row.id, state.from.value, state.to.value, used ? 1 : 0, attributes)
            .Run());
  }
  return used ? mark_.Bind(cluster, row.sender.id, kind, row.id).Run() : absl::OkStatus();
}

absl::Status SqliteEntityStore::Load(UnixNs since, absl::FunctionRef<void(const Row&)> visit) {
  ASSIGN_OR_RETURN(store::Statement all, writer_.Prepare("SELECT cluster, teller, kind, id, begins, ends, used, "
                                                         "attributes FROM state WHERE ends >= ? ORDER BY cluster, "
                                                         "teller, kind, id, begins"));
  all.Bind(since.value);
  Row row;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, all.Step());
    const auto kind = more ? static_cast<EntityKind>(all.Int(2)) : EntityKind::kUnknown;
    const bool same = more && row.kind == kind && row.id == all.Bytes(3) && row.sender.id == all.Bytes(1) &&
                      row.sender.is_cluster == (all.Int(0) != 0);
    if (!same && !row.states.empty()) visit(row);
    if (!more) return absl::OkStatus();
    if (!same)
      row = Row{{all.Int(0) != 0, std::string(all.Bytes(1))}, kind, std::string(all.Bytes(3)), false, false, {}};
    row.used |= all.Int(6) != 0;
    row.states.push_back(StateOf(all, kind, row.id, 4));
  }
}

absl::StatusOr<EntityStore::Row> SqliteEntityStore::Find(const MetadataSender& sender, EntityKind kind,
                                                         std::string_view id) {
  Row row{.sender = sender, .kind = kind, .id = std::string(id)};
  std::lock_guard lock(reader_mutex_);
  find_.Bind(sender.is_cluster ? 1 : 0, sender.id, static_cast<uint8_t>(kind), id);
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, find_.Step());
    if (!more) return row;
    row.used |= find_.Int(2) != 0;
    row.states.push_back(StateOf(find_, kind, id, 0));
  }
}

absl::StatusOr<std::vector<MetadataSender>> SqliteEntityStore::Clusters() {
  ASSIGN_OR_RETURN(store::Statement all, writer_.Prepare("SELECT DISTINCT teller FROM state WHERE cluster = 1"));
  std::vector<MetadataSender> clusters;
  for (;;) {
    ASSIGN_OR_RETURN(const bool more, all.Step());
    if (!more) return clusters;
    clusters.push_back({true, std::string(all.Bytes(0))});
  }
}

absl::StatusOr<bool> SqliteEntityStore::Knows(const MetadataSender& sender) {
  ASSIGN_OR_RETURN(store::Statement any,
                   writer_.Prepare("SELECT 1 FROM state WHERE cluster = ? AND teller = ? LIMIT 1"));
  return any.Bind(sender.is_cluster ? 1 : 0, sender.id).Step();
}

absl::StatusOr<bool> SqliteEntityStore::Expire(UnixNs unused_before, UnixNs used_before) {
  ASSIGN_OR_RETURN(store::Transaction transaction, store::Transaction::Begin(writer_));
  ASSIGN_OR_RETURN(store::Statement old, writer_.Prepare("DELETE FROM state WHERE rowid IN (SELECT rowid FROM state "
                                                         "WHERE ends < ? AND (used = 0 OR ends < ?) LIMIT ?)"));
  RETURN_IF_ERROR(old.Bind(unused_before.value, used_before.value, kExpireRowsMax).Run());
  int64_t removed = writer_.changes();
  ASSIGN_OR_RETURN(const int64_t pages, writer_.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(const int64_t free_pages, writer_.QueryInt("PRAGMA freelist_count"));
  ASSIGN_OR_RETURN(const int64_t page_bytes, writer_.QueryInt("PRAGMA page_size"));
  if (static_cast<uint64_t>((pages - free_pages) * page_bytes) > bytes_max_) {
    ASSIGN_OR_RETURN(store::Statement oldest, writer_.Prepare("DELETE FROM state WHERE rowid IN (SELECT rowid FROM "
                                                              "state ORDER BY ends LIMIT ?)"));
    RETURN_IF_ERROR(oldest.Bind(kExpireRowsMax).Run());
    removed += writer_.changes();
  }
  RETURN_IF_ERROR(transaction.Commit());
  RETURN_IF_ERROR(writer_.Execute("PRAGMA incremental_vacuum(1000)"));
  return removed >= kExpireRowsMax;
}

}  // namespace tributary
