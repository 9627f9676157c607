#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/wire/frame.h"

namespace tributary::intake {

struct ColumnSize {
  std::string name;  // as in docs/intake-protocol.md; columns of definitions have the prefix "definitions.",
                     // and columns of process events the prefix "events."
  uint64_t bytes = 0;
};

// Returns how many bytes each column of a kDefinitions or kBatch payload has in the message, in the columns' order. For
// a packed column, this is its size in the range code, with an error of at most two bytes. InvalidArgument if the
// payload is not a message of this type.
absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload);

}  // namespace tributary::intake
