#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "intake/frame.h"

namespace tributary::intake {

struct ColumnSize {
  std::string name;  // as the schema names it; those of definitions with "definitions." before
  uint64_t bytes = 0;
};

// The bytes of every Data field of a kDefinitions or kBatch payload, in the schema's order: what a message is made of.
// InvalidArgument: not such a message.
absl::StatusOr<std::vector<ColumnSize>> ColumnSizes(MessageType type, std::string_view payload);

}  // namespace tributary::intake
