#include "reducer/sqlite/schema.h"

#include <unistd.h>

#include "base/status.h"
#include "embedded/sql_shard_0001.h"
#include "embedded/sql_shard_0002.h"
#include "embedded/sql_shard_0003.h"
#include "embedded/sql_shard_0004.h"
#include "embedded/sql_shard_0005.h"
#include "embedded/sql_shard_0006.h"
#include "embedded/sql_shard_0007.h"
#include "embedded/sql_shard_0008.h"
#include "embedded/sql_shard_0009.h"
#include "embedded/sql_shard_0010.h"
#include "embedded/sql_shard_0011.h"
#include "embedded/sql_shard_0012.h"
#include "embedded/sql_shard_0013.h"
#include "embedded/sql_shard_0014.h"
#include "embedded/sql_shard_0015.h"
#include "embedded/sql_shard_0016.h"
#include "embedded/sql_shard_0017.h"
#include "embedded/sql_shard_0018.h"
#include "embedded/sql_store_0001.h"
#include "embedded/sql_store_0002.h"
#include "embedded/sql_store_0003.h"
#include "reducer/sqlite/process_numbers.h"
#include "reducer/sqlite/process_writer.h"
#include "reducer/sqlite/string_table.h"

namespace tributary::store {
namespace {

// Rows are mostly 1–4 KB: 8 KiB pages waste at most a fifth of a page, while 4 KiB pages waste half. The first two
// settings take effect only on an empty file, so they come first.
constexpr std::string_view kWriterSettings =
    "PRAGMA page_size = 8192;"
    "PRAGMA auto_vacuum = INCREMENTAL;"
    "PRAGMA journal_mode = WAL;"
    "PRAGMA synchronous = FULL;"
    "PRAGMA journal_size_limit = 67108864;"
    "PRAGMA wal_autocheckpoint = 4096;"
    "PRAGMA cache_size = -16384;";

absl::StatusOr<Database> OpenForWriting(const std::string& path,
                                        std::initializer_list<Database::Migration> migrations) {
  ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kReadWrite));
  RETURN_IF_ERROR(database.Execute(kWriterSettings));
  RETURN_IF_ERROR(database.Migrate(migrations));
  return database;
}

}  // namespace

absl::StatusOr<Database> OpenShardForWriting(const std::string& path) {
  return OpenForWriting(path, {{embedded::sql_shard_0001()},
                               {embedded::sql_shard_0002()},
                               {embedded::sql_shard_0003(), ConvertProcessRows},
                               {embedded::sql_shard_0004()},
                               {embedded::sql_shard_0005()},
                               {embedded::sql_shard_0006()},
                               {embedded::sql_shard_0007()},
                               {embedded::sql_shard_0008()},
                               {embedded::sql_shard_0009()},
                               {embedded::sql_shard_0010()},
                               {embedded::sql_shard_0011()},
                               {embedded::sql_shard_0012()},
                               {embedded::sql_shard_0013(), ConvertStrings},
                               {embedded::sql_shard_0014()},
                               {embedded::sql_shard_0015(), ProtectEarlierNumbers},
                               {embedded::sql_shard_0016()},
                               {embedded::sql_shard_0017()},
                               {embedded::sql_shard_0018()}});
}

absl::StatusOr<Database> OpenDirectoryForWriting(const std::string& path) {
  return OpenForWriting(path,
                        {{embedded::sql_store_0001()}, {embedded::sql_store_0002()}, {embedded::sql_store_0003()}});
}

absl::StatusOr<Database> OpenShardForReading(const std::string& path) {
  if (access(path.c_str(), F_OK) != 0) return ErrnoStatus("open", path, errno);
  ASSIGN_OR_RETURN(Database database, Database::Open(path, Database::Mode::kReadOnly));
  // The file is not mapped into memory: mapped pages of each shard would count as memory of the process, and a query
  // does not get faster.
  RETURN_IF_ERROR(database.Execute("PRAGMA cache_size = -8192;"));
  return database;
}

}  // namespace tributary::store
