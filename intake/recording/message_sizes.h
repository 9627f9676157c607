#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/wire/frame.h"

namespace tributary::intake {

struct ColumnSize {
  std::string name;  // as in docs/intake-protocol.md; columns of definitions have the prefix "definitions."
  uint64_t bytes = 0;
};

// Returns the bytes on the wire of every column of a kDefinitions or kBatch payload, in the columns' order. For a
// packed column this is the size that it took in the range code, within a byte or two. InvalidArgument if the payload
// is not such a message.
absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload);

}  // namespace tributary::intake
