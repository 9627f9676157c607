#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/frame_kinds.h"

namespace tributary {

struct QueryContext;

// Columns. Node 0 is the root. Parents come before children. Children are in descending order of total value.
struct FlameGraph {
  std::vector<std::string> names;        // [0] = "all"
  std::vector<std::string> executables;  // base names
  std::vector<int32_t> parents;
  std::vector<uint32_t> node_names;
  std::vector<FrameKind> kinds;
  std::vector<int32_t> node_executables;  // −1: none
  std::vector<uint64_t> total_values, self_values, total_counts, self_counts;
  uint64_t truncated_nodes = 0;
};

struct TopFunction {
  std::string name, executable;
  FrameKind kind = FrameKind::kUnknown;
  uint64_t self_value = 0, self_count = 0, total_value = 0, total_count = 0;
};

// Returns a flame graph that is cut to its `nodes_max` largest subtrees.
absl::StatusOr<FlameGraph> MakeFlameGraph(const QueryContext& context, size_t nodes_max);
// Returns at most `limit` functions, those with the most own samples. `total_*`: of all samples.
absl::StatusOr<std::vector<TopFunction>> MakeTop(const QueryContext& context, size_t limit, uint64_t* total_value,
                                                 uint64_t* total_count);

}  // namespace tributary
