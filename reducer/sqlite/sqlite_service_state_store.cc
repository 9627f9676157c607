#include "reducer/sqlite/sqlite_service_state_store.h"

#include "base/status.h"
#include "reducer/sqlite/rollouts_db.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<ServiceStateStore>> SqliteServiceStateStore::Open(const std::string& directory) {
  ASSIGN_OR_RETURN(store::Database opened, OpenRolloutsDb(directory));
  std::unique_ptr<SqliteServiceStateStore> made(new SqliteServiceStateStore(std::move(opened)));
  store::Database& database = made->database_;
  ASSIGN_OR_RETURN(made->put_, database.Prepare("INSERT OR REPLACE INTO program "
                                                "(namespace, service, environment, executable, state) "
                                                "VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(made->remove_, database.Prepare("DELETE FROM program WHERE namespace = ? AND service = ? AND "
                                                   "environment = ? AND executable = ?"));
  return made;
}

absl::Status SqliteServiceStateStore::Load(
    absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit) {
  ASSIGN_OR_RETURN(store::Statement all,
                   database_.Prepare("SELECT namespace, service, environment, executable, state FROM program"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) return absl::OkStatus();
    const auto text = [&](int column) { return std::string(all.Bytes(column)); };
    visit({text(0), text(1), text(2), text(3)}, all.Bytes(4));
  }
}

absl::Status SqliteServiceStateStore::Save(std::span<const Row> rows) {
  ASSIGN_OR_RETURN(store::Transaction transaction, store::Transaction::Begin(database_));
  for (const auto& [program, state] : rows) {
    const auto& [name_space, name, environment, executable] = program;
    if (state) {
      RETURN_IF_ERROR(put_.Bind(name_space, name, environment, executable, *state).Run());
    } else {
      RETURN_IF_ERROR(remove_.Bind(name_space, name, environment, executable).Run());
    }
  }
  return transaction.Commit();
}

}  // namespace tributary
