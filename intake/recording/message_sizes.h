#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/wire/frame.h"

namespace tributary::intake {

struct ColumnSize {
  std::string name;  // as docs/intake-protocol.md names it; those of definitions with "definitions." before
  uint64_t bytes = 0;
};

// The bytes on the wire of every column of a kDefinitions or kBatch payload, in the columns' order: what a message is
// made of. Of packed columns they are what each took in the range code, give or take a byte or two.
// InvalidArgument: not such a message.
absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload);

}  // namespace tributary::intake
