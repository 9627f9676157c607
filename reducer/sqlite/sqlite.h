#pragma once

#include <cstdint>
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

// SQLite, owned. A connection and its statements belong to one thread at a time.
//
// Errors: ResourceExhausted (disk or page limit full), PermissionDenied (cannot open or write), Unavailable (locked by
// another connection), DataLoss (not a database, or corrupt), else Internal. Messages say what was done and to which
// file.

namespace tributary::store {

// A prepared statement. Parameters are numbered from 1, columns from 0. Bound bytes are borrowed until Reset, which
// Run does by itself.
class Statement {
 public:
  Statement() = default;

  void BindInt(int index, int64_t value);
  void BindBytes(int index, std::string_view value);

  // Binds all parameters in order: integers (unsigned 64-bit ones by their bits) and byte strings.
  template <typename... Args>
  Statement& Bind(const Args&... args) {
    int index = 0;
    (BindOne(++index, args), ...);
    return *this;
  }

  // True: there is a row. False: done. After an error, or false, the statement is reset.
  absl::StatusOr<bool> Step();
  // Steps to the end and resets.
  absl::Status Run();
  // The same for a statement that ends in RETURNING: the first column of its row.
  absl::StatusOr<int64_t> RunReturning();
  void Reset();

  int64_t Int(int column) const;
  bool IsNull(int column) const;
  std::string_view Bytes(int column) const;  // valid until the next Step or Reset

  // What came of reading a row's bytes: DataLoss gets the name of the file.
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
  std::string_view file_;  // the Database's, which outlives the statement
  int bind_error_ = 0;
};

class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };

  // kReadWrite creates the file. Waits up to 5 s for another connection's lock.
  static absl::StatusOr<Database> Open(const std::string& path, Mode mode);
  Database(Database&&) = default;
  Database& operator=(Database&&) = default;

  // One or more statements without parameters; results are not looked at.
  absl::Status Execute(std::string_view sql);
  absl::StatusOr<Statement> Prepare(std::string_view sql);
  // The first column of the first row; NotFound when there is none.
  absl::StatusOr<int64_t> QueryInt(std::string_view sql);

  int64_t changes() const;  // rows that the last statement changed
  bool in_transaction() const;

  struct Migration {
    std::string_view sql;
    absl::Status (*convert)(Database&) = nullptr;  // behind `sql`: what SQL alone cannot do
  };
  // Applies the migrations whose number (index + 1) is above PRAGMA user_version, each in a transaction of its own.
  // FailedPrecondition: the file was made by a newer release.
  absl::Status Migrate(std::initializer_list<Migration> migrations);
  // Reads the structure of every page. DataLoss: it does not add up.
  absl::Status QuickCheck();

 private:
  struct Close {
    void operator()(sqlite3* database) const;
  };
  Database() = default;

  std::unique_ptr<sqlite3, Close> database_;
  std::unique_ptr<std::string> path_;  // on the heap: statements borrow it
};

// Opens a database whose contents come again by themselves. If `open` returns DataLoss or Internal, the file is set
// aside as FILE.broken, with a line in the log about `what`, and a new one is begun.
absl::StatusOr<Database> OpenOrBeginAnew(const std::string& path, std::string_view what,
                                         absl::FunctionRef<absl::StatusOr<Database>(const std::string&)> open);

// Rolls back unless committed.
class Transaction {
 public:
  // BEGIN IMMEDIATE: the write lock is taken at once, so that no statement in the middle can fail to get it.
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
