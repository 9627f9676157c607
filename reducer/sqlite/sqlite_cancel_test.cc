#include <gtest/gtest.h>

#include <string_view>
#include <utility>

#include "base/directory_testing.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {
namespace {

// This statement never has a row.
constexpr std::string_view kEndless =
    "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n WHERE i < 0";

TEST(DatabaseCancelIf, EndsAStatementThatLooksForARow) {
  const TestDirectory directory;
  Database database = Database::Open(directory.path() + "/db", Database::Mode::kReadWrite).value();
  Statement endless = database.Prepare(kEndless).value();
  int asked = 0;
  database.CancelIf([&asked] { return ++asked >= 5; });
  EXPECT_TRUE(absl::IsDeadlineExceeded(endless.Step().status()));
  EXPECT_EQ(asked, 5);
  EXPECT_TRUE(absl::IsDeadlineExceeded(database.CheckCancelled()));
  EXPECT_TRUE(absl::IsDeadlineExceeded(database.Execute(kEndless)));
  database.CancelIf({});
  EXPECT_TRUE(database.CheckCancelled().ok());
  EXPECT_EQ(database.QueryInt("SELECT 7").value(), 7);
}

TEST(DatabaseCancelIf, IsAskedBeforeEachRow) {
  const TestDirectory directory;
  Database database = Database::Open(directory.path() + "/db", Database::Mode::kReadWrite).value();
  Statement rows = database.Prepare("SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3").value();
  bool cancelled = false;
  Database moved = std::move(database);
  moved.CancelIf([&cancelled] { return cancelled; });
  EXPECT_TRUE(rows.Step().value());
  cancelled = true;
  EXPECT_TRUE(absl::IsDeadlineExceeded(rows.Step().status()));
  cancelled = false;
  EXPECT_TRUE(rows.Step().value()) << "the statement was reset";
  EXPECT_EQ(rows.Int(0), 1);
}

}  // namespace
}  // namespace tributary::store
