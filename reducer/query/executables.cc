#include "reducer/query/executables.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/query_context.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {
namespace {

using Executable = ExecutableList::Executable;

// Identifies an executable by its id, or without an id by its path, as FrameNamer does.
using Key = std::pair<ExecutableId, std::string>;
Key KeyOf(const store::ExecutableRow& row) { return {row.id, row.id.known() ? std::string() : row.path}; }

class ExecutableBuilder {
 public:
  explicit ExecutableBuilder(SymbolStore& symbols) : symbols_(symbols) {}

  absl::Status AddShard(store::StoreReader& reader, const AddressFold& fold, const QueryRequest& request) {
    if (fold.days().empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<store::ExecutableRow> rows, reader.Executables());
    if (rows.empty()) rows.emplace_back();
    for (const auto& [day, nodes] : fold.days()) {
      RETURN_IF_ERROR(AddDay(nodes, rows, request));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ExecutableList> Take(size_t limit, const QueryRequest& request) && {
    for (auto& [key, found] : found_) {
      RETURN_IF_ERROR(CheckCancelled(request));
      if (auto row = symbols_.Find(key.first); row.ok()) found.executable.symbols = *std::move(row);
      RETURN_IF_ERROR(CountNames(found, request));
      list_.executables.push_back(std::move(found.executable));
    }
    ASSIGN_OR_RETURN(const std::vector<SymbolFiles::Row> tables, symbols_.List());
    RETURN_IF_ERROR(CheckCancelled(request));
    for (const SymbolFiles::Row& row : tables) {
      if (found_.contains({row.header.id, ""})) continue;
      list_.executables.push_back({.id = row.header.id, .symbols = row});
    }
    std::stable_sort(list_.executables.begin(), list_.executables.end(), [](const Executable& a, const Executable& b) {
      return std::tie(a.total_value, a.self_value) > std::tie(b.total_value, b.self_value);
    });
    if (list_.executables.size() > limit) {
      list_.truncated = list_.executables.size() - limit;
      list_.executables.resize(limit);
    }
    return std::move(list_);
  }

 private:
  struct Found {
    Executable executable;
    std::vector<store::FrameRow> frames;  // may contain an address more than once
  };

  // A node with a value, or with a descendant that has one.
  struct Walk {
    std::vector<uint64_t> values, counts;             // of the node and its descendants
    std::vector<uint32_t> first_child, next_sibling;  // 0: none
  };

  // Adds each node to its parent. A node comes after its parent, so one pass is enough.
  static absl::StatusOr<Walk> Prepare(const AddressFold::DayNodes& nodes, const QueryRequest& request) {
    const std::span<const store::NodeNo> parents = nodes.trie.parents;
    Walk walk{.values = nodes.values,
              .counts = nodes.counts,
              .first_child = std::vector<uint32_t>(parents.size(), 0),
              .next_sibling = std::vector<uint32_t>(parents.size(), 0)};
    for (auto i = static_cast<uint32_t>(parents.size() - 1); i > 0; --i) {
      RETURN_IF_ERROR(CheckCancelledAt(request, i));
      const uint32_t parent = parents[i].value;
      if (parent >= i) return Error(absl::StatusCode::kDataLoss, "the store is corrupt: a node precedes its parent");
      if (walk.values[i] == 0 && walk.counts[i] == 0) continue;
      walk.values[parent] += walk.values[i];
      walk.counts[parent] += walk.counts[i];
      walk.next_sibling[i] = std::exchange(walk.first_child[parent], i);
    }
    return walk;
  }

  // Walks the tree depth first, and counts the frames of each executable on the path from the root. So each node is
  // visited once, however deep it is.
  absl::Status AddDay(const AddressFold::DayNodes& nodes, const std::vector<store::ExecutableRow>& rows,
                      const QueryRequest& request) {
    const store::TrieView& trie = nodes.trie;
    ASSIGN_OR_RETURN(const Walk walk, Prepare(nodes, request));
    list_.value += walk.values[0];
    list_.count += walk.counts[0];
    std::vector<Found*> of_row(rows.size(), nullptr);
    std::vector<uint32_t> on_path(rows.size(), 0);
    std::vector<uint8_t> seen(trie.frame_rows.size(), 0);
    size_t visited = 0;
    for (uint32_t node = walk.first_child[0]; node != 0;) {
      RETURN_IF_ERROR(CheckCancelledAt(request, ++visited));
      const uint32_t number = ExecutableOf(trie, node, rows.size());
      if (number != 0) {
        Found& found = FoundOf(number, rows, of_row);
        if (!std::exchange(seen[trie.frames[node]], 1)) found.frames.push_back(trie.frame_rows[trie.frames[node]]);
        found.executable.self_value += nodes.values[node];
        found.executable.self_count += nodes.counts[node];
        // A stack counts once for an executable: at its outermost frame in the executable.
        if (on_path[number]++ == 0) {
          found.executable.total_value += walk.values[node];
          found.executable.total_count += walk.counts[node];
        }
      }
      if (walk.first_child[node] != 0) {
        node = walk.first_child[node];
        continue;
      }
      for (; node != 0; node = trie.parents[node].value) {
        if (const uint32_t left = ExecutableOf(trie, node, rows.size()); left != 0) --on_path[left];
        if (walk.next_sibling[node] == 0) continue;
        node = walk.next_sibling[node];
        break;
      }
    }
    return absl::OkStatus();
  }

  // Returns the number of the executable with the node's code, or 0 if it is unknown.
  static uint32_t ExecutableOf(const store::TrieView& trie, uint32_t node, size_t rows) {
    if (trie.frames[node] >= trie.frame_rows.size()) return 0;
    const store::FrameRow& frame = trie.frame_rows[trie.frames[node]];
    return RowOf(frame.kind).has_address && frame.executable.value < rows ? frame.executable.value : 0;
  }

  Found& FoundOf(uint32_t number, const std::vector<store::ExecutableRow>& rows, std::vector<Found*>& of_row) {
    Found*& found = of_row[number];
    if (found != nullptr) return *found;
    found = &found_[KeyOf(rows[number])];
    found->executable.id = rows[number].id;
    if (found->executable.path.empty() || rows[number].path < found->executable.path) {
      found->executable.path = rows[number].path;
    }
    return *found;
  }

  absl::Status CountNames(Found& found, const QueryRequest& request) {
    std::vector<store::FrameRow>& frames = found.frames;
    std::ranges::sort(frames, {}, FrameSymbolizer::AddressOf<store::FrameRow>);
    const auto again = std::ranges::unique(frames, {}, FrameSymbolizer::AddressOf<store::FrameRow>);
    frames.erase(again.begin(), again.end());
    found.executable.addresses = found.executable.unnamed_addresses = frames.size();
    wanted_.resize(frames.size());
    std::iota(wanted_.begin(), wanted_.end(), 0);
    places_.resize(frames.size());
    FrameSymbolizer symbolizer(symbols_.lookup());  // one per executable, because it keeps the table in memory
    for (size_t begin = 0; begin < frames.size(); begin += kStepsPerCheck) {
      RETURN_IF_ERROR(CheckCancelled(request));
      const size_t count = std::min(kStepsPerCheck, frames.size() - begin);
      symbolizer.Find(found.executable.id, frames, std::span(wanted_).subspan(begin, count),
                      std::span(places_).subspan(begin, count));
    }
    for (size_t i = 0; i < frames.size(); ++i) {
      RETURN_IF_ERROR(CheckCancelledAt(request, i));
      FrameSymbolizer::ForEachFrame(places_[i], frames[i], "", "", [&](const SymbolTable::Frame& frame) {
        found.executable.unnamed_addresses -= frame.name.empty() ? 0 : 1;
        return false;
      });
    }
    return absl::OkStatus();
  }

  SymbolStore& symbols_;
  std::map<Key, Found> found_;
  std::vector<uint32_t> wanted_;
  std::vector<FrameSymbolizer::Place> places_;
  ExecutableList list_;
};

}  // namespace

absl::StatusOr<ExecutableList> MakeExecutables(const QueryContext& context, size_t limit) {
  ExecutableBuilder builder(context.symbols);
  const absl::Status visited = ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    AddressFold fold(reader, context);
    RETURN_IF_ERROR(fold.Scan());
    return builder.AddShard(reader, fold, context.request);
  });
  RETURN_IF_ERROR(visited);
  return std::move(builder).Take(limit, context.request);
}

}  // namespace tributary
