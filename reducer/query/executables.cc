#include "reducer/query/executables.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/query_context.h"
#include "reducer/symbolizer/frame_symbolizer.h"

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
      RETURN_IF_ERROR(CheckCancelled(request));
      AddDay(nodes, rows);
    }
    return absl::OkStatus();
  }

  absl::StatusOr<ExecutableList> Take(size_t limit) && {
    for (auto& [key, found] : found_) {
      if (auto row = symbols_.Find(key.first); row.ok()) found.executable.symbols = *std::move(row);
      CountNames(found);
      list_.executables.push_back(std::move(found.executable));
    }
    ASSIGN_OR_RETURN(const std::vector<SymbolFiles::Row> tables, symbols_.List());
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

  void AddDay(const AddressFold::DayNodes& nodes, const std::vector<store::ExecutableRow>& rows) {
    const store::Trie& trie = *nodes.trie;
    const size_t size = trie.parents.size();
    std::vector<uint64_t> values = nodes.values, counts = nodes.counts;
    list_.value += values[0];
    list_.count += counts[0];
    std::vector<Found*> of_row(rows.size(), nullptr);
    std::vector<uint8_t> seen(trie.frame_rows.size(), 0);
    // Visits children before parents.
    for (size_t i = size - 1; i > 0; --i) {
      const uint32_t parent = trie.parents[i].value;
      if (values[i] == 0 && counts[i] == 0) continue;
      list_.value += nodes.values[i];
      list_.count += nodes.counts[i];
      if (parent < i) {
        values[parent] += values[i];
        counts[parent] += counts[i];
      }
      if (trie.frames[i] >= trie.frame_rows.size()) continue;
      const store::FrameRow& frame = trie.frame_rows[trie.frames[i]];
      const uint32_t number = frame.executable.value < rows.size() ? frame.executable.value : 0;
      if (!RowOf(frame.kind).has_address || number == 0) continue;
      Found*& found = of_row[number];
      if (found == nullptr) {
        found = &found_[KeyOf(rows[number])];
        found->executable.id = rows[number].id;
        if (found->executable.path.empty() || rows[number].path < found->executable.path) {
          found->executable.path = rows[number].path;
        }
      }
      if (!std::exchange(seen[trie.frames[i]], 1)) found->frames.push_back(frame);
      found->executable.self_value += nodes.values[i];
      found->executable.self_count += nodes.counts[i];
      // A stack counts once for an executable: at its outermost frame in the executable.
      if (IsBelowItself(trie, i, frame.executable)) continue;
      found->executable.total_value += values[i];
      found->executable.total_count += counts[i];
    }
  }

  static bool IsBelowItself(const store::Trie& trie, size_t node, store::ExecutableNo executable) {
    for (size_t i = trie.parents[node].value; i != 0; i = trie.parents[i].value) {
      if (trie.frames[i] >= trie.frame_rows.size() || trie.parents[i].value >= i) return false;
      const store::FrameRow& frame = trie.frame_rows[trie.frames[i]];
      if (RowOf(frame.kind).has_address && frame.executable == executable) return true;
    }
    return false;
  }

  void CountNames(Found& found) {
    std::vector<store::FrameRow>& frames = found.frames;
    std::ranges::sort(frames, {}, FrameSymbolizer::AddressOf);
    const auto again = std::ranges::unique(frames, {}, FrameSymbolizer::AddressOf);
    frames.erase(again.begin(), again.end());
    found.executable.addresses = found.executable.unnamed_addresses = frames.size();
    wanted_.resize(frames.size());
    std::iota(wanted_.begin(), wanted_.end(), 0);
    places_.resize(frames.size());
    FrameSymbolizer symbolizer(symbols_.lookup());  // one per executable, because it keeps the table in memory
    symbolizer.Find(found.executable.id, frames, wanted_, places_);
    for (size_t i = 0; i < frames.size(); ++i) {
      FrameSymbolizer::ForEachFrame(places_[i], frames[i], "", [&](const SymbolTable::Frame& frame) {
        found.executable.unnamed_addresses -= frame.name.empty() ? 0 : 1;
        return false;
      });
    }
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
  const absl::Status visited = ForEachShard(context.store, [&](store::StoreReader& reader) -> absl::Status {
    AddressFold fold(reader, context);
    RETURN_IF_ERROR(fold.Scan());
    return builder.AddShard(reader, fold, context.request);
  });
  RETURN_IF_ERROR(visited);
  return std::move(builder).Take(limit);
}

}  // namespace tributary
