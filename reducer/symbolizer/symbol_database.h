#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/types.h"
#include "reducer/store/sqlite.h"
#include "symbols/symbol_table.h"

namespace tributary {

// symbols.db: one row a table, the encoded table as one zstd blob. Errors as reducer/store/sqlite.h says. One thread at
// a time: SymbolStore holds its lock around every call.
class SymbolDatabase {
 public:
  // What a row takes on disk beside its blob, at most; counts towards the cap so that empty tables are not free.
  static constexpr uint64_t kRowOverheadBytes = 512;

  struct Row {
    ExecutableId id;
    SymbolSource source = SymbolSource::kNone;
    uint64_t symbols = 0;
    uint64_t raw_bytes = 0;     // of EncodeSymbolTable
    uint64_t stored_bytes = 0;  // of the blob
    UnixNs last_used;
  };

  static absl::StatusOr<SymbolDatabase> Open(const std::string& path);

  absl::StatusOr<std::vector<Row>> List();  // rows that make no sense are left out
  absl::Status Put(const Row& row, std::string_view blob);
  absl::StatusOr<std::string> LoadBlob(const ExecutableId& id);  // NotFound
  absl::Status SetLastUsed(const ExecutableId& id, UnixNs time);
  // Deletes and gives the pages back to the file system.
  absl::Status Delete(const std::vector<ExecutableId>& ids);

 private:
  SymbolDatabase(store::Database database) : database_(std::move(database)) {}

  store::Database database_;
  store::Statement put_, load_, touch_, delete_;
};

}  // namespace tributary
