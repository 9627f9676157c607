#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/frame_kinds.h"

namespace tributary {

struct QueryContext;

// A flame graph, with one column per property of a node. Node 0 is the root. Parents come before children. Children of
// the same parent are in descending order of total value.
struct FlameGraph {
  std::vector<std::string> names;        // [0] = "all"
  std::vector<std::string> executables;  // base names
  std::vector<int32_t> parents;
  std::vector<uint32_t> node_names;
  std::vector<FrameKind> kinds;
  std::vector<int32_t> node_executables;  // −1: none
  std::vector<uint64_t> total_values, self_values, total_counts, self_counts;
  // Only if the request wants lines.
  std::vector<std::string> files;    // paths of source files
  std::vector<int32_t> node_files;   // −1: unknown
  std::vector<uint32_t> node_lines;  // 0: unknown
  uint64_t truncated_nodes = 0;
};

struct TopFunction {
  std::string name, executable;
  std::string file;   // of the source; only if the request wants lines, and "" if it is unknown
  uint32_t line = 0;  // 0: unknown
  FrameKind kind = FrameKind::kUnknown;
  uint64_t self_value = 0, self_count = 0, total_value = 0, total_count = 0;
};

// Returns the flame graph of the selected samples. If it has more than `nodes_max` nodes, only those with the largest
// total values remain.
absl::StatusOr<FlameGraph> MakeFlameGraph(const QueryContext& context, size_t nodes_max);
// Returns the `limit` functions with the largest self values. Sets `total_value` and `total_count` to the sums over all
// selected samples.
absl::StatusOr<std::vector<TopFunction>> MakeTop(const QueryContext& context, size_t limit, uint64_t* total_value,
                                                 uint64_t* total_count);

}  // namespace tributary
