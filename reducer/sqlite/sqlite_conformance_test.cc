#include <gtest/gtest.h>

#include <memory>

#include "base/directory_testing.h"
#include "reducer/sqlite/schema.h"
#include "reducer/sqlite/sqlite_store.h"
#include "reducer/store/store_conformance_testing.h"

namespace tributary::store {
namespace {

class SqliteBackend : public StoreBackend {
 public:
  absl::StatusOr<std::unique_ptr<Store>> Open(const StoreOptions& options, const Clock& clock,
                                              Metrics& metrics) override {
    return SqliteStore::Open(directory_.path(), options, clock, metrics);
  }
  // Fails at the last row that a commit writes, the row of its session.
  void FailCommits(bool fail) override {
    Database other = OpenShardForWriting(directory_.path() + "/shard-0.db").value();
    for (const char* event : {"INSERT", "UPDATE"}) {
      const std::string name = std::string("fail_") + event;
      const std::string sql =
          fail ? "CREATE TRIGGER " + name + " BEFORE " + event + " ON session BEGIN SELECT RAISE(ABORT, 'no'); END"
               : "DROP TRIGGER " + name;
      TRIBUTARY_CHECK(other.Execute(sql).ok());
    }
  }

 private:
  const TestDirectory directory_;
};

INSTANTIATE_STORE_CONFORMANCE(Sqlite, [] { return std::make_unique<SqliteBackend>(); });

}  // namespace
}  // namespace tributary::store
