#include "reducer/query/address_fold.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/status.h"
#include "reducer/query/gauge_mean.h"
#include "reducer/query/selection.h"
#include "reducer/query/stack_forms.h"

namespace tributary {
namespace {

// Frames that are named at once (some milliseconds, if their names are demangled), and how many nodes ahead memory is
// prefetched.
constexpr size_t kNamedTogether = 1024, kAhead = 8;

absl::Status Corrupt(std::string_view reason) {
  return Error(absl::StatusCode::kDataLoss, fmt::format("the store is corrupt: {}", reason));
}

}  // namespace

absl::StatusOr<AddressFold::DayNodes*> AddressFold::FindDay(store::Day day) {
  if (auto it = days_.find(day); it != days_.end()) return &it->second;
  ASSIGN_OR_RETURN(store::TrieView trie, reader_.LoadTrie(day));
  size_t size = trie.parents.size();
  if (size == 0 || trie.frames.size() != size || trie.frame_rows.empty()) {
    return Corrupt(fmt::format("the tree of stacks of day {} is empty, or its columns differ in length", day.value));
  }
  node_count_ += size;
  if (node_count_ > context_.limits.address_nodes_max) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("the stacks in this time range have more than {} nodes: ask for a shorter time range",
                             context_.limits.address_nodes_max));
  }
  DayNodes& nodes = days_[day];
  nodes.trie = std::move(trie);
  nodes.values.resize(size);
  nodes.counts.resize(size);
  return &nodes;
}

absl::Status AddressFold::AddRow(DayNodes& nodes, store::NodeNo node, uint64_t value, uint64_t count) {
  // The tree ends before a damaged piece until the store has set the piece aside. Its stacks are unknown.
  if (node.value >= nodes.values.size()) node = {};
  nodes.values[node.value] += value;
  nodes.counts[node.value] += count;
  return absl::OkStatus();
}

absl::Status AddressFold::Scan() {
  const QueryRequest& request = context_.request;
  ASSIGN_OR_RETURN(Selection selection, Selection::Make(reader_, context_));
  if (selection.uses_threads()) {
    return reader_.ScanSamples(
        request.range, selection.filter(), [&](const store::SampleColumns& columns) -> absl::Status {
          RETURN_IF_ERROR(CheckCancelled(request));
          if (!selection.Has(columns.type)) return absl::OkStatus();
          ASSIGN_OR_RETURN(DayNodes * nodes, FindDay(columns.day));
          for (size_t i = 0; i < columns.nodes.size(); ++i) {
            if (!selection.Has(columns.processes[i], columns.threads[i], columns.times[i])) continue;
            RETURN_IF_ERROR(AddRow(*nodes, columns.nodes[i], columns.values[i], columns.counts[i]));
          }
          return absl::OkStatus();
        });
  }
  const absl::Status scanned =
      reader_.ScanSums(request.range, selection.filter(), [&](const store::SumColumns& columns) -> absl::Status {
        RETURN_IF_ERROR(CheckCancelled(request));
        if (!selection.Has(columns.type)) return absl::OkStatus();
        ASSIGN_OR_RETURN(DayNodes * nodes, FindDay(columns.day));
        for (size_t i = 0; i < columns.nodes.size(); ++i) {
          if (!selection.Has(columns.processes[i], MiddleOf(columns.minute))) continue;
          RETURN_IF_ERROR(AddRow(*nodes, columns.nodes[i], columns.values[i], columns.counts[i]));
        }
        return absl::OkStatus();
      });
  RETURN_IF_ERROR(scanned);
  return context_.gauge_minutes > 1 ? Average() : absl::OkStatus();
}

absl::Status AddressFold::Average() {
  GaugeMean mean(context_.gauge_minutes);
  for (auto& [day, nodes] : days_) {
    for (size_t i = 0; i < nodes.values.size(); ++i) {
      RETURN_IF_ERROR(CheckCancelledAt(context_.request, i));
      mean.Divide(&nodes.values[i], &nodes.counts[i]);
    }
  }
  return absl::OkStatus();
}

// Visits children before parents.
absl::StatusOr<std::vector<uint8_t>> AddressFold::FindUsedNodes(const DayNodes& nodes, const QueryRequest& request) {
  const store::TrieView& trie = nodes.trie;
  std::vector<uint8_t> used(trie.parents.size(), 0);
  for (size_t i = used.size() - 1; i > 0; --i) {
    RETURN_IF_ERROR(CheckCancelledAt(request, i));
    if (trie.parents[i].value >= i) return Corrupt(fmt::format("stack node {} comes before its parent", i));
    if (nodes.counts[i] != 0 || nodes.values[i] != 0) used[i] = 1;
    if (used[i] != 0) used[trie.parents[i].value] = 1;
  }
  return used;
}

absl::Status AddressFold::MapInto(FrameNamer& namer, FunctionTrie* functions) {
  if (days_.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::vector<store::ExecutableRow> rows, reader_.Executables());
  if (rows.empty()) rows.emplace_back();  // number 0 is the unknown executable
  std::vector<uint32_t> executables;
  executables.reserve(rows.size());
  for (const store::ExecutableRow& row : rows) executables.push_back(namer.InternExecutable(row));
  for (const auto& [day, nodes] : days_) RETURN_IF_ERROR(MapDay(nodes, executables, namer, functions));
  return absl::OkStatus();
}

absl::Status AddressFold::NameRows(const store::TrieView& trie, const std::vector<uint8_t>& used,
                                   const std::vector<uint32_t>& executables, FrameNamer& namer,
                                   std::vector<FrameNamer::Chain>* chains) {
  std::map<uint32_t, std::vector<uint32_t>> rows_of;  // by the namer's executable; a map: its order is always the same
  std::vector<uint8_t> taken(trie.frame_rows.size(), 0);
  for (size_t i = 1; i < used.size(); ++i) {
    RETURN_IF_ERROR(CheckCancelledAt(context_.request, i));
    if (used[i] == 0) continue;
    const uint32_t frame = trie.frames[i];
    if (frame >= trie.frame_rows.size()) return Corrupt(fmt::format("stack frame {} is not defined", frame));
    if (std::exchange(taken[frame], 1) != 0) continue;
    const uint32_t executable = trie.frame_rows[frame].executable.value;
    rows_of[executables[executable < executables.size() ? executable : 0]].push_back(frame);
  }
  chains->resize(trie.frame_rows.size());
  absl::Status read;
  auto text_of = [&](store::StringId id) {
    if (!read.ok()) return std::string_view();
    absl::StatusOr<std::string_view> text = reader_.Text(id);
    if (own_names_.insert(id).second) own_name_bytes_ += FrameSymbolizer::OwnName(text.value_or("")).size();
    if (!text.ok()) {
      read = text.status();
    } else if (own_name_bytes_ > context_.limits.own_name_bytes_max) {
      read =
          Error(absl::StatusCode::kResourceExhausted,
                fmt::format(
                    "the names of the frames in this time range have more than {} bytes: ask for a shorter time range",
                    context_.limits.own_name_bytes_max));
    }
    return read.ok() ? *text : std::string_view();
  };
  for (const auto& [executable, rows] : rows_of) {
    for (size_t begin = 0; begin < rows.size(); begin += kNamedTogether) {
      RETURN_IF_ERROR(CheckCancelled(context_.request));
      const size_t count = std::min(kNamedTogether, rows.size() - begin);
      namer.Name(executable, trie.frame_rows, std::span(rows).subspan(begin, count), text_of, *chains);
      RETURN_IF_ERROR(read);
    }
  }
  return absl::OkStatus();
}

absl::Status AddressFold::ChooseForms(const DayNodes& nodes, const FrameNamer& namer,
                                      std::span<const FrameNamer::Chain> chains, std::vector<uint8_t>* shown) const {
  return StackForms(context_.request)
      .Choose(
          nodes.trie, [&](size_t node) { return namer.KindOf(chains[nodes.trie.frames[node]]); },
          [&](size_t node) { return nodes.counts[node] != 0 || nodes.values[node] != 0; }, shown);
}

absl::StatusOr<FunctionNode> AddressFold::Extend(FunctionNode node, std::span<const FunctionNo> chain,
                                                 FunctionTrie* functions) const {
  for (FunctionNo function : chain) {
    const std::optional<FunctionNode> child = functions->Child(node, function);
    if (!child) {
      return Error(absl::StatusCode::kResourceExhausted,
                   fmt::format("the call tree of this query has more than {} nodes: ask for a shorter time range or a "
                               "narrower selector",
                               functions->nodes_max()));
    }
    node = *child;
  }
  return node;
}

// Maps each node to a node of the trie of functions. A node can be part of stacks with and without the frames of
// interpreters. Then it is mapped to two nodes.
absl::Status AddressFold::MapDay(const DayNodes& nodes, const std::vector<uint32_t>& executables, FrameNamer& namer,
                                 FunctionTrie* functions) {
  const store::TrieView& trie = nodes.trie;
  size_t size = trie.parents.size();
  ASSIGN_OR_RETURN(std::vector<uint8_t> shown, FindUsedNodes(nodes, context_.request));
  std::vector<FrameNamer::Chain> chains;  // by frame row
  RETURN_IF_ERROR(NameRows(trie, shown, executables, namer, &chains));
  const bool has_forms = StackForms(context_.request).IsNeeded(trie);
  if (has_forms) RETURN_IF_ERROR(ChooseForms(nodes, namer, chains, &shown));
  size_t functions_max = 0;
  for (size_t i = 1; i < size; ++i) {
    RETURN_IF_ERROR(CheckCancelledAt(context_.request, i));
    if ((shown[i] & (StackForms::kPlain | StackForms::kFolded)) != 0) functions_max += chains[trie.frames[i]].count;
  }
  functions->Expect(functions_max);
  // Parents come before children: each node's function node is below its parent's function node.
  std::vector<FunctionNode> plain(size, FunctionNode{0}), folded(has_forms ? size : 0, FunctionNode{0});
  if (context_.request.languages == 0) functions->AddSelf(FunctionNode{0}, nodes.values[0], nodes.counts[0]);
  for (size_t i = 1; i < size; ++i) {
    RETURN_IF_ERROR(CheckCancelledAt(context_.request, i));
    const uint32_t parent = trie.parents[i].value;
    if (i + kAhead < size) functions->Prefetch(plain[trie.parents[i + kAhead].value]);
    if ((shown[i] & (StackForms::kPlain | StackForms::kFolded)) == 0) continue;
    const std::span<const FunctionNo> chain = namer.Functions(chains[trie.frames[i]]);
    if ((shown[i] & StackForms::kPlain) != 0) {
      ASSIGN_OR_RETURN(plain[i], Extend(plain[parent], chain, functions));
    }
    if ((shown[i] & StackForms::kFolded) != 0) {
      folded[i] = folded[parent];
      if (!StackForms::IsFoldedAway(trie.frame_rows[trie.frames[i]].kind)) {
        ASSIGN_OR_RETURN(folded[i], Extend(folded[parent], chain, functions));
      }
    }
    const uint8_t form = has_forms ? StackForms::FormOf(shown[i]) : StackForms::kPlain;
    if (form != 0) {
      functions->AddSelf(form == StackForms::kFolded ? folded[i] : plain[i], nodes.values[i], nodes.counts[i]);
    }
  }
  return absl::OkStatus();
}

}  // namespace tributary
