#pragma once

#include <sqlite3.h>

#include <atomic>
#include <cstdint>

namespace tributary::store {

// Counts the work of SQLite: the steps of its virtual machine. A statement takes a few steps for each row that it
// reads. Counts the finished statements of those connections that are opened while a SqliteSteps exists. Use one object
// at a time.
class SqliteSteps {
 public:
  SqliteSteps() { sqlite3_auto_extension(reinterpret_cast<void (*)()>(&Watch)); }
  ~SqliteSteps() { sqlite3_cancel_auto_extension(reinterpret_cast<void (*)()>(&Watch)); }
  SqliteSteps(const SqliteSteps&) = delete;
  SqliteSteps& operator=(const SqliteSteps&) = delete;

  // Returns the number of steps since the last call.
  static int64_t Take() { return steps_.exchange(0); }

 private:
  // SQLite calls it for each new connection.
  static int Watch(sqlite3* database, const char**, const void*) {
    return sqlite3_trace_v2(database, SQLITE_TRACE_PROFILE, &Finished, nullptr);
  }
  static int Finished(unsigned, void*, void* statement, void*) {
    steps_ += sqlite3_stmt_status(static_cast<sqlite3_stmt*>(statement), SQLITE_STMTSTATUS_VM_STEP, /*resetFlg=*/1);
    return 0;
  }

  static inline std::atomic<int64_t> steps_{0};
};

}  // namespace tributary::store
