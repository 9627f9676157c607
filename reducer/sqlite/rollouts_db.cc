#include "reducer/sqlite/rollouts_db.h"

#include "base/status.h"
#include "embedded/sql_rollouts_0001.h"
#include "embedded/sql_rollouts_0002.h"

namespace tributary {
namespace {

constexpr std::string_view kSettings =
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = NORMAL;"
    "PRAGMA cache_size = -512;";

}  // namespace

absl::StatusOr<store::Database> OpenRolloutsDb(const std::string& directory) {
  ASSIGN_OR_RETURN(store::Database database,
                   store::Database::Open(directory + "/rollouts.db", store::Database::Mode::kReadWrite));
  RETURN_IF_ERROR(database.Execute(kSettings));
  RETURN_IF_ERROR(database.Migrate({{embedded::sql_rollouts_0001()}, {embedded::sql_rollouts_0002()}}));
  return database;
}

}  // namespace tributary
