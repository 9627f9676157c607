#include "reducer/query/query.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/frame_namer.h"
#include "reducer/query/function_trie.h"

namespace tributary {

QueryEngine::QueryEngine(store::Store& store, SymbolStore& symbols, QueryLimits limits, const ResourceJoiner* joiner)
    : store_(store),
      symbols_(symbols),
      limits_(limits),
      joiner_(joiner),
      own_names_(joiner == nullptr ? std::make_unique<AttributeNames>() : nullptr),
      names_(joiner == nullptr ? *own_names_ : joiner->names()),
      demangled_(std::make_unique<DemangleCache>()) {}
QueryEngine::~QueryEngine() = default;

std::unique_ptr<ResourceCache> QueryEngine::Resources(const QueryRequest& request) const {
  return joiner_ == nullptr ? nullptr : std::make_unique<ResourceCache>(*joiner_, request.range);
}

// A name that only a process says it has is met when somebody joins it: perhaps nobody did yet.
absl::Status QueryEngine::Check(const QueryRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  if (request.selector.CheckNames(names_).ok()) return absl::OkStatus();
  RETURN_IF_ERROR(MeetNames(request));
  return request.selector.CheckNames(names_);
}

absl::Status QueryEngine::MeetNames(const QueryRequest& request) {
  absl::flat_hash_set<std::string> met;
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    ASSIGN_OR_RETURN(std::vector<store::ProcessRow> rows, reader->Processes(request.range, nullptr));
    RETURN_IF_ERROR(CheckCancelled(request));
    for (const store::ProcessRow& row : rows) {
      if (!row.attributes.empty() && met.insert(row.attributes).second) names_.Meet(DecodeAttributes(row.attributes));
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> QueryEngine::QueryLabels(const QueryRequest& request) {
  RETURN_IF_ERROR(CheckRequest(request));
  RETURN_IF_ERROR(MeetNames(request));
  return names_.List();
}

absl::Status QueryEngine::Fold(const QueryRequest& request, FunctionTrie* trie) {
  RETURN_IF_ERROR(Check(request));
  const std::unique_ptr<ResourceCache> resources = Resources(request);
  FrameNamer namer(symbols_, *demangled_, request.frames, *trie);
  for (uint32_t shard = 0; shard < store_.shard_count(); ++shard) {
    ASSIGN_OR_RETURN(std::unique_ptr<store::StoreReader> reader, store_.OpenReader(shard));
    AddressFold fold(*reader, request, limits_, resources.get());
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
