#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"

namespace tributary {

struct QueryContext;

struct FunctionLinesRequest {
  std::string name;        // as a flame graph shows it
  std::string executable;  // base name; "": any
};

// Where in a function's source its samples are.
struct FunctionLines {
  struct Address {
    ExecutableId id;
    uint64_t address = 0;  // as it was sampled; of a call the one it returns to
    uint64_t value = 0, count = 0;
  };
  struct Line {
    std::string file;                           // "": not known
    uint32_t line = 0;                          // 0: not known
    uint64_t self_value = 0, self_count = 0;    // the line itself ran
    uint64_t total_value = 0, total_count = 0;  // or what it called
    std::vector<Address> addresses;
  };
  std::vector<Line> lines;  // by file and line; a sample is in one, that of the innermost call of the function
};

absl::StatusOr<FunctionLines> MakeLines(const QueryContext& context, const FunctionLinesRequest& function);

}  // namespace tributary
