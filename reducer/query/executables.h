#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"
#include "reducer/symbolizer/symbol_files.h"

namespace tributary {

struct QueryContext;

// The executables that the selected samples contain, and for each the number of its sampled addresses without a
// function name. Executables that have a symbol table but no samples are also in the list.
struct ExecutableList {
  struct Executable {
    ExecutableId id;
    std::string path;                               // one of its paths; "": not sampled, or the path is unknown
    uint64_t self_value = 0, self_count = 0;        // samples with their innermost frame in its code
    uint64_t total_value = 0, total_count = 0;      // samples with any frame in its code
    uint64_t addresses = 0, unnamed_addresses = 0;  // distinct addresses
    std::optional<SymbolFiles::Row> symbols;
  };
  std::vector<Executable> executables;  // the largest total_value first; executables that only have a table come last
  uint64_t value = 0, count = 0;        // of all selected samples
  uint64_t truncated = 0;               // executables that were left out
};

// Returns at most `limit` executables.
absl::StatusOr<ExecutableList> MakeExecutables(const QueryContext& context, size_t limit);

}  // namespace tributary
