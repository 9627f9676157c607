#include "reducer/query/address_fold.h"

#include <fmt/format.h>

#include "base/status.h"

namespace tributary {
namespace {

// Cancelling is looked at once in so many nodes: a few milliseconds of work.
constexpr size_t kNodesPerCheck = 65'536;
constexpr uint32_t kNone = UINT32_MAX;
constexpr FunctionNo kNoFunction{UINT32_MAX};

absl::Status Corrupt(std::string_view what) {
  return Error(absl::StatusCode::kDataLoss, fmt::format("the store is corrupt: {}", what));
}

}  // namespace

absl::Status CheckCancelled(const QueryRequest& request) {
  if (!request.is_cancelled || !request.is_cancelled()) return absl::OkStatus();
  return Error(absl::StatusCode::kDeadlineExceeded, "the query took too long: ask for a shorter time or less");
}

absl::Status CheckRequest(const QueryRequest& request) {
  if (request.range.from >= request.range.to) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("the time range is empty: from ({} ms) must be before to ({} ms)",
                             request.range.from.value / kNsPerMs, request.range.to.value / kNsPerMs));
  }
  return CheckCancelled(request);
}

absl::StatusOr<AddressFold::DayNodes*> AddressFold::FindDay(store::Day day) {
  if (auto it = days_.find(day); it != days_.end()) return &it->second;
  ASSIGN_OR_RETURN(std::shared_ptr<const store::Trie> trie, reader_.LoadTrie(day));
  size_t size = trie->parents.size();
  if (size == 0 || trie->frames.size() != size || trie->frame_rows.empty()) {
    return Corrupt(fmt::format("the trie of day {} has columns of different lengths", day.value));
  }
  node_count_ += size;
  if (node_count_ > limits_.address_nodes_max) {
    return Error(
        absl::StatusCode::kResourceExhausted,
        fmt::format("this time spans more than {} stack nodes: ask for a shorter time", limits_.address_nodes_max));
  }
  DayNodes& nodes = days_[day];
  nodes.trie = std::move(trie);
  nodes.values.resize(size);
  nodes.counts.resize(size);
  return &nodes;
}

absl::Status AddressFold::AddRow(DayNodes& nodes, store::NodeNo node, uint64_t value, uint64_t count) {
  if (node.value >= nodes.values.size()) return Corrupt(fmt::format("node {} is not in its day's trie", node.value));
  nodes.values[node.value] += value;
  nodes.counts[node.value] += count;
  return absl::OkStatus();
}

absl::Status AddressFold::Scan() {
  ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader_, request_.selector, request_.range, limits_));
  if (selection.uses_threads()) {
    return reader_.ScanSamples(request_.range, [&](const store::SampleColumns& columns) -> absl::Status {
      RETURN_IF_ERROR(CheckCancelled(request_));
      if (columns.type != request_.type) return absl::OkStatus();
      ASSIGN_OR_RETURN(DayNodes * nodes, FindDay(columns.day));
      for (size_t i = 0; i < columns.nodes.size(); ++i) {
        if (!selection.Has(columns.processes[i], columns.threads[i])) continue;
        RETURN_IF_ERROR(AddRow(*nodes, columns.nodes[i], columns.values[i], columns.counts[i]));
      }
      return absl::OkStatus();
    });
  }
  return reader_.ScanSums(request_.range, [&](const store::SumColumns& columns) -> absl::Status {
    RETURN_IF_ERROR(CheckCancelled(request_));
    if (columns.type != request_.type) return absl::OkStatus();
    ASSIGN_OR_RETURN(DayNodes * nodes, FindDay(columns.day));
    for (size_t i = 0; i < columns.nodes.size(); ++i) {
      if (!selection.Has(columns.processes[i])) continue;
      RETURN_IF_ERROR(AddRow(*nodes, columns.nodes[i], columns.values[i], columns.counts[i]));
    }
    return absl::OkStatus();
  });
}

absl::Status AddressFold::MapInto(FrameNamer& namer, FunctionTrie* functions) {
  if (days_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<store::ExecutableRow> rows, reader_.Executables());
  if (rows.empty()) rows.emplace_back();  // number 0 is the unknown one
  std::vector<uint32_t> executables;
  executables.reserve(rows.size());
  for (const store::ExecutableRow& row : rows) executables.push_back(namer.InternExecutable(row));
  for (const auto& [day, nodes] : days_) RETURN_IF_ERROR(MapDay(nodes, executables, namer, functions));
  return absl::OkStatus();
}

absl::Status AddressFold::MapDay(const DayNodes& nodes, const std::vector<uint32_t>& executables, FrameNamer& namer,
                                 FunctionTrie* functions) {
  const store::Trie& trie = *nodes.trie;
  size_t size = trie.parents.size();
  // Children before parents: which nodes lead to a value. The rest of the day's trie is never named.
  std::vector<uint8_t> met(size, 0);
  for (size_t i = size - 1; i > 0; --i) {
    if (trie.parents[i].value >= i) return Corrupt(fmt::format("node {} stands before its parent", i));
    if (nodes.counts[i] != 0 || nodes.values[i] != 0) met[i] = 1;
    if (met[i] != 0) met[trie.parents[i].value] = 1;
  }
  // Parents before children: each node's function node is a child of its parent's.
  std::vector<uint32_t> mapped(size, 0);
  std::vector<uint32_t> chain_of_row(trie.frame_rows.size(), kNone);  // where its functions begin in `chains`
  std::vector<FunctionNo> chains;                                     // behind each chain's last there is none
  functions->AddSelf(FunctionNode{0}, nodes.values[0], nodes.counts[0]);
  for (size_t i = 1; i < size; ++i) {
    if (i % kNodesPerCheck == 0) RETURN_IF_ERROR(CheckCancelled(request_));
    if (met[i] == 0) continue;
    if (trie.frames[i] >= trie.frame_rows.size())
      return Corrupt(fmt::format("frame {} is not defined", trie.frames[i]));
    uint32_t& chain = chain_of_row[trie.frames[i]];
    if (chain == kNone) {
      const store::FrameRow& row = trie.frame_rows[trie.frames[i]];
      uint32_t executable =
          row.executable.value < executables.size() ? executables[row.executable.value] : executables[0];
      const std::span<const FunctionNo> named = namer.Functions(executable, row);
      chain = static_cast<uint32_t>(chains.size());
      chains.insert(chains.end(), named.begin(), named.end());
      chains.push_back(kNoFunction);
    }
    FunctionNode node{mapped[trie.parents[i].value]};
    for (size_t at = chain; chains[at] != kNoFunction; ++at) {
      const std::optional<FunctionNode> child = functions->Child(node, chains[at]);
      if (!child) {
        return Error(absl::StatusCode::kResourceExhausted,
                     fmt::format("the answer has more than {} nodes: ask for less, by selector or time",
                                 functions->nodes_max()));
      }
      node = *child;
    }
    mapped[i] = node.value;
    functions->AddSelf(node, nodes.values[i], nodes.counts[i]);
  }
  return absl::OkStatus();
}

}  // namespace tributary
