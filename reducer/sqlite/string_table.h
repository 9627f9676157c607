#pragma once

#include <cstdint>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/row_ids.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/text_hash.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Replaces the names that a node may not store any more, because it has sent too many definitions today.
inline constexpr std::string_view kTextOverQuota = "[history quota]";

// The table of texts. Each text is stored once, and charged to the first machine that sends it. Looks up a text by its
// hash. Use it inside the writer's transaction, on the writer's thread.
class StringTable {
 public:
  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<StringTable> Prepare(Database& database, NodeLedger& ledger);

  struct Row {
    uint32_t no = 0;      // 0: the text is new, and `machine` may not store further definitions today
    int64_t machine = 0;  // the only machine that has used the text; 0: several
  };
  // Returns the text's row. Marks it as used on `day` by `machine`. Adds a row for a new text. Machine 0 has no limit.
  absl::StatusOr<Row> Put(std::string_view text, int64_t machine, Day day);
  // Marks the row `id`, if it exists, as used on `day` by `machine`.
  absl::Status Use(int64_t id, int64_t machine, Day day);

 private:
  struct Known {
    Day last_day;
    int64_t machine = 0;
    size_t text_bytes = 0;
  };

  explicit StringTable(NodeLedger& ledger) : ledger_(&ledger) {}
  absl::Status Use(int64_t id, const Known& known, int64_t machine, Day day);

  NodeLedger* ledger_;
  TextHashKey key_;
  Statement find_, read_, put_, use_;
  RowIds ids_;
};

// For Database::Migrate. Moves the texts of schema 10 into a table that stores each text once.
absl::Status ConvertStrings(Database& database);

}  // namespace tributary::store
