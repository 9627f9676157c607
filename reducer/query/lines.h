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

// The source lines of one function. A line has the values of the samples that were taken while the line, or a function
// that it called, was running.
struct FunctionLines {
  struct Address {
    ExecutableId id;
    uint64_t address = 0;  // as sampled; for a call, the address that it returns to
    uint64_t value = 0, count = 0;
  };
  struct Line {
    std::string file;                           // "": unknown
    uint32_t line = 0;                          // 0: unknown
    uint64_t self_value = 0, self_count = 0;    // the line itself ran
    uint64_t total_value = 0, total_count = 0;  // the line, or a function that it called, ran
    std::vector<Address> addresses;
  };
  std::vector<Line> lines;  // by file and line; each sample is in one line: the line of the function's innermost call
};

absl::StatusOr<FunctionLines> MakeLines(const QueryContext& context, const FunctionLinesRequest& function);

}  // namespace tributary
