#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/model.h"

namespace tributary {

struct QueryContext;

// Counts how stacks ended (see Ending), and in which executables incomplete stacks ended.
struct StackHealth {
  struct Weights {
    uint64_t value = 0, count = 0;
    uint64_t ending_values[kEndingCount] = {}, ending_counts[kEndingCount] = {};
    void Add(Ending ending, uint64_t v, uint64_t c);
    void Add(const Weights& other);
  };
  // An executable in which stacks ended early: it contains the outermost user frame (the last frame walked) of stacks
  // that are neither complete nor kernel_only nor cut_by_quota.
  struct Executable {
    std::string name;                   // base name, or the id if no path is known; or kUnmapped or kNoUserFrame
    std::string build_id;               // "": none
    std::vector<std::string> programs;  // base names of the affected processes, most samples first
    Weights weights;
  };
  static constexpr std::string_view kUnmapped = "[unmapped]";          // no file is known at the address
  static constexpr std::string_view kNoUserFrame = "[no user frame]";  // no frame of user code was read
  static constexpr size_t kProgramsMax = 5;

  Weights total;
  std::vector<Executable> executables;  // the most samples first
  uint64_t truncated_executables = 0;   // executables that were left out
};

// Reads only raw samples, because sums do not contain how stacks ended.
absl::StatusOr<StackHealth> MakeStackHealth(const QueryContext& context, size_t executables_max);

}  // namespace tributary
