#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"

namespace tributary::store {

// Columns contain the ids of other rows as 32-bit numbers. 0 refers to no row.
inline constexpr int64_t kRowIdMax = std::numeric_limits<uint32_t>::max();

// Returns nullopt if no column can refer to the id. A row has such an id only if the file is damaged.
inline std::optional<uint32_t> ReadRowId(int64_t stored) {
  if (stored < 1 || stored > kRowIdMax) return std::nullopt;
  return static_cast<uint32_t>(stored);
}

// Selects the highest id that was given to a row of the table, within the possible ids.
std::string HighestRowIdSql(std::string_view table);

// Gives ids to new rows of a table with the column `id`. SQLite itself would give the id after the highest one, which
// does not fit into 32 bits if a single row has a damaged id.
//
// Ids grow, so that the id of a removed row is not given again. After kRowIdMax, the numbering starts again at the
// lowest id without a row. Then data that still refer to a removed row may show the name of a new one. Costs one
// look-up for each new row. Use it inside the writer's transaction, on the writer's thread.
class RowIds {
 public:
  // `database` must outlive the object. `table` must be AUTOINCREMENT.
  static absl::StatusOr<RowIds> Prepare(Database& database, std::string_view table);

  // Returns an id without a row. The first call reads the highest id that was given. An id is not returned again, even
  // if the transaction is rolled back.
  absl::StatusOr<uint32_t> New();
  // Returns the id of a row. If it is damaged, logs this and gives the row a new id.
  absl::StatusOr<uint32_t> Mend(int64_t id);

 private:
  std::string table_;
  std::string file_;
  Statement find_, change_;
  Database* database_ = nullptr;
  int64_t next_ = 0;  // 0: not read yet
};

}  // namespace tributary::store
