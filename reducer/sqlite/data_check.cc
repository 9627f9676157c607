#include "reducer/sqlite/data_check.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/status.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/shard_check.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/damage.h"

namespace tributary::store {
namespace {

// Numbers of migrations of the files whose contents are not checked. A test compares them with new files.
constexpr int64_t kMetadataSchema = 1, kRolloutsSchema = 3;

constexpr std::string_view kReplaceable =
    "nothing: at its next start, the reducer renames the file and begins a new one";

struct File {
  std::string path;
  int64_t schema;             // of this release
  std::string_view advice;    // if it is damaged
  Database* fresh = nullptr;  // an empty database with the same schema; nullptr: the schema is not compared
  bool is_shard = false;
};

// Damage of the schema's text may leave valid SQL. Removes comments and white space, which may differ between releases.
std::string Essence(std::string_view sql) {
  std::string essence;
  bool comment = false;
  for (size_t i = 0; i < sql.size(); ++i) {
    if (sql.substr(i, 2) == "--") comment = true;
    if (sql[i] == '\n') comment = false;
    if (!comment && sql[i] != ' ' && sql[i] != '\n') essence += sql[i];
  }
  return essence;
}

// Returns the objects of the schema, and the rows of the table watermark, which the schema defines, too.
absl::StatusOr<std::vector<std::string>> SchemaOf(Database& database) {
  std::vector<std::string> all;
  ASSIGN_OR_RETURN(Statement objects, database.Prepare("SELECT type, name, tbl_name, sql FROM sqlite_schema WHERE name "
                                                       "NOT LIKE 'sqlite_%' ORDER BY name"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, objects.Step());
    if (!row) break;
    all.push_back(
        fmt::format("{} {} {} {}", objects.Bytes(0), objects.Bytes(1), objects.Bytes(2), Essence(objects.Bytes(3))));
  }
  absl::StatusOr<Statement> names = database.Prepare("SELECT name FROM watermark ORDER BY name");
  if (!names.ok()) return all;  // store.db has no such table
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, names->Step());
    if (!row) return all;
    all.emplace_back(names->Bytes(0));
  }
}

bool HasBytes(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 && info.st_size > 0;
}

// Says whether a reducer holds the directory's lock.
bool InUse(const std::string& directory) {
  const Fd lock(open((directory + "/LOCK").c_str(), O_RDONLY | O_CLOEXEC));
  return lock.valid() && flock(lock.get(), LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
}

absl::Status CheckPages(const File& file, Database& database, const FindingVisitor& visit) {
  ASSIGN_OR_RETURN(Statement check, database.Prepare("PRAGMA integrity_check(20)"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, check.Step());
    if (!row) return absl::OkStatus();
    if (check.Bytes(0) == "ok") continue;
    std::string what(check.Bytes(0));
    std::replace(what.begin(), what.end(), '\n', ' ');
    visit({Finding::Kind::kDamage, file.path, std::move(what), std::string(file.advice)});
  }
}

absl::Status CheckOpened(const File& file, Database& database, const FindingVisitor& visit) {
  RETURN_IF_ERROR(database.Execute("BEGIN"));
  ASSIGN_OR_RETURN(const int64_t version, database.QueryInt("PRAGMA user_version"));
  if (version > file.schema) {
    visit({Finding::Kind::kNewerRelease, file.path,
           fmt::format("a newer release wrote the file (schema version {}, but this release knows version {})", version,
                       file.schema),
           "use the tributary command of that release"});
    return absl::OkStatus();
  }
  RETURN_IF_ERROR(CheckPages(file, database, visit));
  if (version < file.schema) {
    visit({Finding::Kind::kNote, file.path, "an earlier release wrote the file, so only its pages were checked",
           "start the reducer of this release, which converts the file, and check again"});
    return absl::OkStatus();
  }
  if (file.fresh != nullptr) {
    ASSIGN_OR_RETURN(const std::vector<std::string> schema, SchemaOf(database));
    ASSIGN_OR_RETURN(const std::vector<std::string> expected, SchemaOf(*file.fresh));
    if (schema != expected) {
      visit({Finding::Kind::kDamage, file.path, "the schema is damaged", std::string(file.advice)});
      return absl::OkStatus();
    }
  }
  return file.is_shard ? CheckShard(database, visit) : absl::OkStatus();
}

// Damage of the file is a finding. Other errors are the caller's.
absl::Status CheckFile(const File& file, bool in_use, const FindingVisitor& visit) {
  // With an empty log, SQLite need not make the log's index, which would change the directory.
  const bool unchanging = !in_use && !HasBytes(file.path + "-wal");
  absl::StatusOr<Database> database =
      Database::Open(file.path, unchanging ? Database::Mode::kUnchanging : Database::Mode::kReadOnly);
  const absl::Status status = database.ok() ? CheckOpened(file, *database, visit) : database.status();
  // NotFound: a row that every file has is missing.
  if (!absl::IsDataLoss(status) && !absl::IsNotFound(status) && !absl::IsInternal(status)) return status;
  visit({Finding::Kind::kDamage, file.path, "the check ended early: " + Message(status), std::string(file.advice)});
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckSqliteDirectory(const std::string& directory, const FindingVisitor& visit) {
  std::error_code error;
  std::filesystem::directory_iterator entries(directory, error);
  if (error) return ErrnoStatus("open", directory, error.value());
  ASSIGN_OR_RETURN(Database shard, OpenShardForWriting(":memory:"));
  ASSIGN_OR_RETURN(Database store, OpenDirectoryForWriting(":memory:"));
  ASSIGN_OR_RETURN(const int64_t store_schema, store.QueryInt("PRAGMA user_version"));
  std::vector<File> files;
  bool has_store = false;
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string(), path = entry.path().string();
    has_store |= name == "store.db";
    if (name == "store.db") files.push_back({path, store_schema, kRestoreAdvice, &store});
    if (name == "metadata.db") files.push_back({path, kMetadataSchema, kReplaceable});
    if (name == "rollouts.db") files.push_back({path, kRolloutsSchema, kReplaceable});
    if (name.starts_with("shard-") && name.ends_with(".db"))
      files.push_back({path, kShardSchema, kRestoreAdvice, &shard, true});
    if (name.ends_with(".broken")) {
      visit({Finding::Kind::kNote, path, "the reducer has replaced this damaged file by an empty one",
             "delete it when you do not need it any more"});
    }
  }
  if (!has_store) {
    return Error(absl::StatusCode::kNotFound,
                 fmt::format("{} is not the data directory of a reducer: it has no file store.db", directory));
  }
  std::sort(files.begin(), files.end(), [](const File& a, const File& b) { return a.path < b.path; });
  const bool in_use = InUse(directory);
  if (in_use) {
    visit({Finding::Kind::kNote, directory, "a reducer uses the directory: each file is checked as it is at one moment",
           ""});
  }
  for (const File& file : files) RETURN_IF_ERROR(CheckFile(file, in_use, visit));
  return absl::OkStatus();
}

}  // namespace tributary::store
