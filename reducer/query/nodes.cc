#include "reducer/query/nodes.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "base/status.h"
#include "reducer/query/query_context.h"

namespace tributary {
namespace {

// Merges two rows of a node that changed its shard. Adds the totals. Takes the other fields from the row with the later
// last_seen.
void Merge(store::NodeStatus& row, store::NodeStatus* kept) {
  if (row.last_seen > kept->last_seen) std::swap(row, *kept);
  kept->Add(row.accounting, row.stored);
  kept->wire_bytes += row.wire_bytes;
  for (size_t i = 0; i < kEndingCount; ++i) kept->endings[i] += row.endings[i];
}

}  // namespace

absl::StatusOr<std::vector<store::NodeStatus>> ListNodes(store::Store& store, const QueryRequest& request) {
  std::map<std::string, store::NodeStatus> nodes;
  const absl::Status visited = ForEachShard(store, request, [&nodes](store::StoreReader& reader) -> absl::Status {
    ASSIGN_OR_RETURN(std::vector<store::NodeStatus> rows, reader.Nodes());
    for (store::NodeStatus& row : rows) {
      auto [it, added] = nodes.try_emplace(row.node_id, row);
      if (!added) Merge(row, &it->second);
    }
    return absl::OkStatus();
  });
  RETURN_IF_ERROR(visited);
  std::vector<store::NodeStatus> sorted;
  sorted.reserve(nodes.size());
  for (auto& [id, node] : nodes) sorted.push_back(std::move(node));
  std::sort(sorted.begin(), sorted.end(), [](const store::NodeStatus& a, const store::NodeStatus& b) {
    return std::tie(a.host_name, a.node_id) < std::tie(b.host_name, b.node_id);
  });
  return sorted;
}

}  // namespace tributary
