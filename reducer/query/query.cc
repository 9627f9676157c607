#include "reducer/query/query.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "base/status.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/frame_namer.h"
#include "reducer/query/function_trie.h"

namespace tributary {

QueryEngine::QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits)
    : store_(store), symbols_(symbols), limits_(limits), demangled_(std::make_unique<DemangleCache>()) {}
QueryEngine::~QueryEngine() = default;

absl::Status QueryEngine::Fold(const QueryRequest& request, FunctionTrie* trie) {
  RETURN_IF_ERROR(CheckRequest(request));
  FrameNamer namer(symbols_, *demangled_, request.frames, *trie);
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    AddressFold fold(*reader, request, limits_);
    RETURN_IF_ERROR(fold.Scan());
    RETURN_IF_ERROR(fold.MapInto(namer, trie));
  }
  return absl::OkStatus();
}

absl::StatusOr<FlameGraph> QueryEngine::QueryFlameGraph(const QueryRequest& request, size_t nodes_max) {
  FunctionTrie trie(limits_.function_nodes_max);
  RETURN_IF_ERROR(Fold(request, &trie));
  return trie.ToFlameGraph(nodes_max);
}

absl::StatusOr<std::vector<TopFunction>> QueryEngine::QueryTop(const QueryRequest& request, size_t limit,
                                                               uint64_t* total_value, uint64_t* total_count) {
  FunctionTrie trie(limits_.function_nodes_max);
  RETURN_IF_ERROR(Fold(request, &trie));
  *total_value = trie.TotalValue();
  *total_count = trie.TotalCount();
  return trie.Top(limit);
}

absl::StatusOr<std::vector<store::NodeStatus>> QueryEngine::QueryNodes() {
  std::map<std::string, store::NodeStatus> nodes;
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    ASSIGN_OR_RETURN(std::vector<store::NodeStatus> rows, reader->Nodes());
    for (store::NodeStatus& row : rows) {
      auto [it, added] = nodes.try_emplace(row.node_id, row);
      if (added) continue;
      // A node whose shard changed: its totals add up, what it is comes from where it was seen last.
      store::NodeStatus& kept = it->second;
      if (row.last_seen > kept.last_seen) std::swap(row, kept);
      kept.accounting.captured += row.accounting.captured;
      kept.accounting.idle += row.accounting.idle;
      for (size_t i = 0; i < kLossReasonCount; ++i) kept.accounting.lost[i] += row.accounting.lost[i];
      kept.stored += row.stored;
      kept.wire_bytes += row.wire_bytes;
      for (size_t i = 0; i < kEndingCount; ++i) kept.endings[i] += row.endings[i];
    }
  }
  std::vector<store::NodeStatus> sorted;
  sorted.reserve(nodes.size());
  for (auto& [id, node] : nodes) sorted.push_back(std::move(node));
  std::sort(sorted.begin(), sorted.end(), [](const store::NodeStatus& a, const store::NodeStatus& b) {
    return std::tie(a.host_name, a.node_id) < std::tie(b.host_name, b.node_id);
  });
  return sorted;
}

}  // namespace tributary
