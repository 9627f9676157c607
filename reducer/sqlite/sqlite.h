#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

struct sqlite3;
struct sqlite3_stmt;

// Owned SQLite connections. A connection and its statements belong to one thread at a time.
//
// Errors: ResourceExhausted (disk full, or no memory), PermissionDenied (the file cannot be opened or written),
// Unavailable (another connection holds the lock), Aborted (an I/O error of the disk), DataLoss (the file is not a
// database, or is corrupt), DeadlineExceeded (CancelIf), Internal (any other error). Messages contain the name of the
// file.

namespace tributary::store {

// A prepared statement. Parameters are numbered from 1, columns from 0. The caller must keep bound bytes unchanged
// until Reset. Run calls Reset when it is done.
class Statement {
 public:
  Statement() = default;

  void BindInt(int index, int64_t value);
  void BindBytes(int index, std::string_view value);

  // Binds all parameters, in order. Each must be an integer or a byte string. An unsigned 64-bit integer is stored as
  // the signed integer with the same bits.
  template <typename... Args>
  Statement& Bind(const Args&... args) {
    int index = 0;
    (BindOne(++index, args), ...);
    return *this;
  }

  // Returns true if the statement has a row, and false at the end. Resets the statement after an error and at the end.
  absl::StatusOr<bool> Step();
  // Executes the statement to its end, discards its rows, and resets it.
  absl::Status Run();
  // Executes a statement with a RETURNING clause like Run, and returns the first column of its first row.
  absl::StatusOr<int64_t> RunReturning();
  void Reset();

  int64_t Int(int column) const;
  bool IsNull(int column) const;
  std::string_view Bytes(int column) const;  // valid until the next Step or Reset

  // Returns `status`. If it is DataLoss, adds the name of the file to its message. Use it for errors from decoding the
  // bytes of a row.
  absl::Status InFile(const absl::Status& status) const;

 private:
  friend class Database;
  struct Finalize {
    void operator()(sqlite3_stmt* statement) const;
  };
  template <typename T>
  void BindOne(int index, const T& value) {
    if constexpr (std::is_integral_v<T>) {
      BindInt(index, static_cast<int64_t>(value));
    } else {
      BindBytes(index, value);
    }
  }

  std::unique_ptr<sqlite3_stmt, Finalize> statement_;
  std::string_view file_;                                // the path in the Database, which must outlive the statement
  const std::function<bool()>* is_cancelled_ = nullptr;  // of the Database
  int bind_error_ = 0;
};

class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly, kUnchanging };

  // kReadWrite creates the file if it does not exist. kUnchanging: as kReadOnly, but without locks and without any file
  // next to the database. Use it only if no process writes to the database and its write-ahead log is empty. Each
  // operation of the Database waits up to 5 s for another connection's lock.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode);
  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

  // Runs one or more SQL statements without parameters. Discards the rows that they return.
  absl::Status Execute(std::string_view sql);
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // Returns the first column of the first row, or NotFound if the result has no row.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

  // Copies the write-ahead log into the file and makes the log empty. Waits up to `wait_ms` for connections that read
  // an old state. Returns false if one of them still does: then the log keeps its size. Call it outside of
  // transactions.
  absl::StatusOr<bool> EmptyLog(int wait_ms);

  // Makes this and later calls of Step and Execute end with DeadlineExceeded once `is_cancelled` returns true. It is
  // called at each Step, and also while SQLite looks for a row.
  void CancelIf(std::function<bool()> is_cancelled);
  // For loops that do not use Step. Returns DeadlineExceeded if the function of CancelIf returns true.
  absl::Status CheckCancelled() const;

  const std::string& path() const { return *path_; }
  int64_t changes() const;  // rows that the last statement changed
  bool in_transaction() const;

  struct Migration {
    std::string_view sql;
    absl::Status (*convert)(Database&) = nullptr;  // runs after `sql`: does the part that SQL alone cannot do
  };
  // Applies those migrations that the file does not have yet, each in its own transaction. PRAGMA user_version is the
  // number of migrations that the file has. Returns FailedPrecondition if it is higher than the number of `migrations`:
  // a newer release wrote the file.
  absl::Status Migrate(std::initializer_list<Migration> migrations);
  // Checks the structure of all pages. Returns DataLoss if it is damaged.
  absl::Status QuickCheck();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database() = default;

  // On the heap, because statements and SQLite borrow them.
  std::unique_ptr<std::string> path_;
  std::unique_ptr<std::function<bool()>> is_cancelled_ = std::make_unique<std::function<bool()>>();
  std::unique_ptr<sqlite3, Close> database_;
};

// Opens a database, or replaces it by an empty one if it is damaged. Use it only for contents that may be lost. If
// `open` returns DataLoss, Aborted or Internal, renames the file to FILE.broken, logs an error that names `contents`,
// and creates a new file.
absl::StatusOr<Database> OpenOrBeginAnew(const std::string& path, std::string_view contents,
                                         absl::FunctionRef<absl::StatusOr<Database>(const std::string&)> open);

// A transaction. The destructor rolls it back unless it was committed.
class Transaction {
 public:
  // Runs BEGIN IMMEDIATE, which acquires the write lock at once. So later statements of the transaction cannot fail
  // because of the lock.
  static absl::StatusOr<Transaction> Begin(Database& database);
  Transaction(Transaction&& other) noexcept : database_(std::exchange(other.database_, nullptr)) {}
  Transaction& operator=(Transaction&&) = delete;
  ~Transaction();
  absl::Status Commit();

 private:
  explicit Transaction(Database* database) : database_(database) {}
  Database* database_;
};

}  // namespace tributary::store
