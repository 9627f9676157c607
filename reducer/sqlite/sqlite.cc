#include "reducer/sqlite/sqlite.h"

#include <fmt/format.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "base/log.h"
#include "base/status.h"

namespace tributary::store {
namespace {

constexpr int kLockWaitMs = 5000;
constexpr size_t kShownBytes = 500;          // of a statement, in a message
constexpr int kOperationsPerCheck = 10'000;  // of SQLite's virtual machine: less than a millisecond

absl::Status Cancelled(std::string_view file) {
  return Error(absl::StatusCode::kDeadlineExceeded, fmt::format("reading {} was cancelled", file));
}

int IsCancelled(void* is_cancelled) { return (*static_cast<std::function<bool()>*>(is_cancelled))() ? 1 : 0; }

absl::Status Damaged(std::string_view file, std::string_view why) {
  std::string text = fmt::format("{} is damaged ({})", file, why);
  std::replace(text.begin(), text.end(), '\n', ' ');
  return Error(absl::StatusCode::kDataLoss, text);
}

absl::Status SqliteStatus(sqlite3* database, int result, std::string_view operation, std::string_view file) {
  absl::StatusCode code = absl::StatusCode::kInternal;
  const int system_error = database != nullptr ? sqlite3_system_errno(database) : 0;
  switch (result & 0xff) {
    case SQLITE_FULL:
    case SQLITE_NOMEM:
      code = absl::StatusCode::kResourceExhausted;
      break;
    case SQLITE_IOERR:
      code = system_error == ENOSPC || system_error == EDQUOT ? absl::StatusCode::kResourceExhausted
                                                              : absl::StatusCode::kAborted;
      break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      code = absl::StatusCode::kUnavailable;
      break;
    case SQLITE_CANTOPEN:
      // Reading a WAL database creates its index file, which fails on a full disk.
      code = system_error == ENOSPC ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kPermissionDenied;
      break;
    case SQLITE_READONLY:
    case SQLITE_PERM:
      code = absl::StatusCode::kPermissionDenied;
      break;
    case SQLITE_INTERRUPT:
      return Cancelled(file);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      code = absl::StatusCode::kDataLoss;
      break;
    default:
      break;
  }
  const char* text = database != nullptr ? sqlite3_errmsg(database) : sqlite3_errstr(result);
  if (code == absl::StatusCode::kDataLoss) return Damaged(file, fmt::format("{}, SQLite {}", text, result));
  return Error(code, fmt::format("{} {}: {} (SQLite {})", operation, file, text, result));
}

}  // namespace

void Statement::Finalize::operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }

void Statement::BindInt(int index, int64_t value) {
  if (int result = sqlite3_bind_int64(statement_.get(), index, value); result != SQLITE_OK) bind_error_ = result;
}

void Statement::BindBytes(int index, std::string_view value) {
  // A null pointer would bind NULL rather than the empty string.
  const char* bytes = value.data() != nullptr ? value.data() : "";
  int result = sqlite3_bind_blob64(statement_.get(), index, bytes, value.size(), SQLITE_STATIC);
  if (result != SQLITE_OK) bind_error_ = result;
}

absl::StatusOr<bool> Statement::Step() {
  if (is_cancelled_ != nullptr && *is_cancelled_ && (*is_cancelled_)()) {
    Reset();
    return Cancelled(file_);
  }
  int result = bind_error_ != 0 ? bind_error_ : sqlite3_step(statement_.get());
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    Reset();
    return false;
  }
  absl::Status error = SqliteStatus(sqlite3_db_handle(statement_.get()), result, "use", file_);
  Reset();
  return error;
}

absl::Status Statement::Run() {
  for (;;) {
    absl::StatusOr<bool> row = Step();
    if (!row.ok()) return row.status();
    if (!*row) return absl::OkStatus();
  }
}

absl::StatusOr<int64_t> Statement::RunReturning() {
  ASSIGN_OR_RETURN(const bool row, Step());
  if (!row) return absl::InternalError("statement returned no row");
  const int64_t value = Int(0);
  RETURN_IF_ERROR(Run());
  return value;
}

void Statement::Reset() {
  sqlite3_reset(statement_.get());
  bind_error_ = 0;
}

absl::Status Statement::InFile(const absl::Status& status) const {
  return absl::IsDataLoss(status) ? Damaged(file_, Message(status)) : status;
}

int64_t Statement::Int(int column) const { return sqlite3_column_int64(statement_.get(), column); }

bool Statement::IsNull(int column) const { return sqlite3_column_type(statement_.get(), column) == SQLITE_NULL; }

std::string_view Statement::Bytes(int column) const {
  auto* bytes = static_cast<const char*>(sqlite3_column_blob(statement_.get(), column));
  return {bytes != nullptr ? bytes : "", static_cast<size_t>(sqlite3_column_bytes(statement_.get(), column))};
}

void Database::Close::operator()(sqlite3* database) const { sqlite3_close_v2(database); }

absl::StatusOr<Database> Database::Open(const std::string& path, Mode mode) {
  // Switches off SQLite's count of its memory. No component needs the count, and counting takes a lock at each
  // allocation: 8% of the time of an ingest. The setting must come before the first connection of the process.
  [[maybe_unused]] static const int without_statistics = sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
  flags |= mode == Mode::kReadWrite ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE : SQLITE_OPEN_READONLY;
  sqlite3* handle = nullptr;
  std::string name = path;
  if (mode == Mode::kUnchanging) {
    flags |= SQLITE_OPEN_URI;
    name = "file:";
    for (const char c : path) name += c == '%' || c == '?' || c == '#' ? fmt::format("%{:02x}", c) : std::string(1, c);
    name += "?immutable=1";
  }
  int result = sqlite3_open_v2(name.c_str(), &handle, flags, nullptr);
  Database database;
  database.database_.reset(handle);
  database.path_ = std::make_unique<std::string>(path);
  if (result != SQLITE_OK) return SqliteStatus(handle, result, "open", path);
  sqlite3_busy_timeout(handle, kLockWaitMs);
  return database;
}

absl::Status Database::Execute(std::string_view sql) {
  int result = sqlite3_exec(database_.get(), std::string(sql).c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return SqliteStatus(database_.get(), result, "use", *path_);
  return absl::OkStatus();
}

absl::StatusOr<Statement> Database::Prepare(std::string_view sql) {
  sqlite3_stmt* handle = nullptr;
  int result = sqlite3_prepare_v3(database_.get(), sql.data(), static_cast<int>(sql.size()), SQLITE_PREPARE_PERSISTENT,
                                  &handle, nullptr);
  if (result != SQLITE_OK) {
    // A statement may list thousands of machines.
    return SqliteStatus(database_.get(), result, fmt::format("prepare \"{}\" on", sql.substr(0, kShownBytes)), *path_);
  }
  Statement statement;
  statement.statement_.reset(handle);
  statement.file_ = *path_;
  statement.is_cancelled_ = is_cancelled_.get();
  return statement;
}

absl::StatusOr<int64_t> Database::QueryInt(std::string_view sql) {
  ASSIGN_OR_RETURN(Statement statement, Prepare(sql));
  ASSIGN_OR_RETURN(bool row, statement.Step());
  if (!row) return absl::NotFoundError("no row");
  return statement.Int(0);
}

absl::StatusOr<bool> Database::EmptyLog(int wait_ms) {
  sqlite3_busy_timeout(database_.get(), wait_ms);
  const int result = sqlite3_wal_checkpoint_v2(database_.get(), nullptr, SQLITE_CHECKPOINT_TRUNCATE, nullptr, nullptr);
  sqlite3_busy_timeout(database_.get(), kLockWaitMs);
  if (result == SQLITE_OK) return true;
  if ((result & 0xff) == SQLITE_BUSY) return false;
  return SqliteStatus(database_.get(), result, "empty the write-ahead log of", *path_);
}

void Database::CancelIf(std::function<bool()> is_cancelled) {
  *is_cancelled_ = std::move(is_cancelled);
  sqlite3_progress_handler(database_.get(), *is_cancelled_ ? kOperationsPerCheck : 0, IsCancelled, is_cancelled_.get());
}

absl::Status Database::CheckCancelled() const {
  return *is_cancelled_ && (*is_cancelled_)() ? Cancelled(*path_) : absl::OkStatus();
}

int64_t Database::changes() const { return sqlite3_changes64(database_.get()); }
bool Database::in_transaction() const { return sqlite3_get_autocommit(database_.get()) == 0; }

absl::Status Database::Migrate(std::initializer_list<Migration> migrations) {
  ASSIGN_OR_RETURN(int64_t version, QueryInt("PRAGMA user_version"));
  if (version > static_cast<int64_t>(migrations.size())) {
    return absl::FailedPreconditionError(
        ToAbsl(fmt::format("{} was written by a newer release (schema version {}, but this release knows version {}): "
                           "start the newer release again, or restore a backup from before the upgrade",
                           *path_, version, migrations.size())));
  }
  int64_t number = 0;
  for (const Migration& migration : migrations) {
    if (++number <= version) continue;
    ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*this));
    RETURN_IF_ERROR(Execute(migration.sql));
    if (migration.convert != nullptr) RETURN_IF_ERROR(migration.convert(*this));
    RETURN_IF_ERROR(Execute(fmt::format("PRAGMA user_version = {}", number)));
    RETURN_IF_ERROR(transaction.Commit());
  }
  return absl::OkStatus();
}

absl::Status Database::QuickCheck() {
  ASSIGN_OR_RETURN(Statement check, Prepare("PRAGMA quick_check(1)"));
  ASSIGN_OR_RETURN(const bool answered, check.Step());
  return answered && check.Bytes(0) != "ok" ? Damaged(*path_, check.Bytes(0)) : absl::OkStatus();
}

absl::StatusOr<Database> OpenOrBeginAnew(const std::string& path, std::string_view contents,
                                         absl::FunctionRef<absl::StatusOr<Database>(const std::string&)> open) {
  absl::StatusOr<Database> opened = open(path);
  const absl::Status& status = opened.status();
  if (!absl::IsDataLoss(status) && !absl::IsInternal(status) && !absl::IsAborted(status)) return opened;
  const std::string aside = path + ".broken";
  LogError("{} cannot be read, an empty database is used instead path={} kept_as={} error=\"{}\"", contents, path,
           aside, Message(opened.status()));
  if (rename(path.c_str(), aside.c_str()) != 0) return ErrnoStatus("rename", path, errno);
  for (const char* suffix : {"-wal", "-shm"}) unlink((path + suffix).c_str());
  return open(path);
}

absl::StatusOr<Transaction> Transaction::Begin(Database& database) {
  RETURN_IF_ERROR(database.Execute("BEGIN IMMEDIATE"));
  return Transaction(&database);
}

// A failed write may have rolled back the transaction already. If a rollback fails, nothing can be done: the next BEGIN
// reports the failure.
Transaction::~Transaction() {
  if (database_ != nullptr && database_->in_transaction()) (void)database_->Execute("ROLLBACK");
}

absl::Status Transaction::Commit() {
  absl::Status committed = database_->Execute("COMMIT");
  if (committed.ok()) database_ = nullptr;
  return committed;
}

}  // namespace tributary::store
