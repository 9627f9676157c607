#include "reducer/sqlite/sqlite_rollout_store.h"

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/sqlite/rollouts_db.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<RolloutStore>> SqliteRolloutStore::Open(const std::string& directory) {
  ASSIGN_OR_RETURN(store::Database opened, OpenRolloutsDb(directory));
  std::unique_ptr<SqliteRolloutStore> made(new SqliteRolloutStore(std::move(opened)));
  store::Database& database = made->database_;
  ASSIGN_OR_RETURN(made->insert_, database.Prepare("INSERT OR IGNORE INTO rollout (cluster, id, at, attributes, no) "
                                                   "VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(made->remove_, database.Prepare("DELETE FROM rollout WHERE cluster = ? AND id = ?"));
  ASSIGN_OR_RETURN(made->raise_, database.Prepare("UPDATE rollout_number SET highest = max(highest, ?)"));
  return made;
}

absl::Status SqliteRolloutStore::Load(absl::FunctionRef<void(const Row&)> visit) {
  ASSIGN_OR_RETURN(store::Statement all, database_.Prepare("SELECT cluster, id, at, attributes, no FROM rollout"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) return absl::OkStatus();
    visit({std::string(all.Bytes(0)), std::string(all.Bytes(1)), UnixNs{all.Int(2)}, std::string(all.Bytes(3)),
           all.Int(4)});
  }
}

absl::StatusOr<int64_t> SqliteRolloutStore::HighestNumber() {
  return database_.QueryInt("SELECT coalesce(max(highest), 0) FROM rollout_number");
}

absl::Status SqliteRolloutStore::Save(std::span<const Row> added, std::span<const Row> removed) {
  ASSIGN_OR_RETURN(store::Transaction transaction, store::Transaction::Begin(database_));
  for (const Row& row : removed) RETURN_IF_ERROR(remove_.Bind(row.cluster, row.id).Run());
  int64_t highest = 0;
  for (const Row& row : added) {
    RETURN_IF_ERROR(insert_.Bind(row.cluster, row.id, row.at.value, row.attributes, row.no).Run());
    highest = std::max(highest, row.no);
  }
  if (!added.empty()) RETURN_IF_ERROR(raise_.Bind(highest).Run());
  return transaction.Commit();
}

}  // namespace tributary
