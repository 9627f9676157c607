#include "reducer/metadata/service_state_db.h"

#include "base/status.h"
#include "reducer/metadata/rollouts_db.h"

namespace tributary {

absl::StatusOr<ServiceStateDb> ServiceStateDb::Open(const std::string& path) {
  ASSIGN_OR_RETURN(store::Database opened, OpenRolloutsDb(path));
  ServiceStateDb db(std::move(opened));
  ASSIGN_OR_RETURN(db.put_, db.database_.Prepare("INSERT OR REPLACE INTO program "
                                                 "(namespace, service, environment, executable, state) "
                                                 "VALUES (?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(db.remove_, db.database_.Prepare("DELETE FROM program WHERE namespace = ? AND service = ? AND "
                                                    "environment = ? AND executable = ?"));
  return db;
}

absl::Status ServiceStateDb::Load(absl::FunctionRef<void(const ServiceProgram&, std::string_view state)> visit) {
  ASSIGN_OR_RETURN(store::Statement all,
                   database_.Prepare("SELECT namespace, service, environment, executable, state FROM program"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all.Step());
    if (!row) return absl::OkStatus();
    const auto text = [&](int column) { return std::string(all.Bytes(column)); };
    visit({text(0), text(1), text(2), text(3)}, all.Bytes(4));
  }
}

absl::Status ServiceStateDb::Save(std::span<const Row> rows) {
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
