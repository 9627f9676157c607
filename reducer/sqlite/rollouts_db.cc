#include "reducer/sqlite/rollouts_db.h"

#include "base/status.h"
#include "embedded/sql_rollouts_0001.h"
#include "embedded/sql_rollouts_0002.h"
#include "embedded/sql_rollouts_0003.h"

namespace tributary {
namespace {

constexpr std::string_view kSettings =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA cache_size = -512;";

absl::StatusOr<store::Database> Open(const std::string& path) {
  ASSIGN_OR_RETURN(store::Database database, store::Database::Open(path, store::Database::Mode::kReadWrite));
  RETURN_IF_ERROR(database.Execute(kSettings));
  RETURN_IF_ERROR(database.Migrate(
      {{embedded::sql_rollouts_0001()}, {embedded::sql_rollouts_0002()}, {embedded::sql_rollouts_0003()}}));
  RETURN_IF_ERROR(database.QuickCheck());
  return database;
}

}  // namespace

absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& directory) {
  return store::OpenOrBeginAnew(directory + "/rollouts.db", "rollouts", Open);
}

}  // namespace tributary
