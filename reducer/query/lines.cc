#include "reducer/query/lines.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "reducer/query/address_fold.h"
#include "reducer/query/query_context.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {
namespace {

constexpr uint32_t kNone = UINT32_MAX;
constexpr size_t kNamesPerCheck = 256;  // looking up and demangling a name takes microseconds

// Finds, for each stack, the line at which the function ran or called another one: the line in the innermost frame of
// the function.
class LineBuilder {
 public:
  LineBuilder(SymbolStore& symbols, DemangleCache& demangled, const FunctionLinesRequest& function)
      : symbolizer_(symbols.lookup()), demangled_(demangled), function_(function) {}

  absl::Status AddShard(store::StoreReader& reader, const AddressFold& fold, const QueryRequest& request) {
    if (fold.days().empty()) return absl::OkStatus();
    ASSIGN_OR_RETURN(std::vector<store::ExecutableRow> rows, reader.Executables());
    for (const auto& [day, nodes] : fold.days()) {
      RETURN_IF_ERROR(AddDay(reader, nodes, rows, request));
    }
    return absl::OkStatus();
  }

  FunctionLines Take() && {
    FunctionLines out;
    for (auto& [place, line] : lines_) {
      line.file = place.first;
      line.line = place.second;
      std::sort(line.addresses.begin(), line.addresses.end(),
                [](const auto& a, const auto& b) { return std::tie(a.id, a.address) < std::tie(b.id, b.address); });
      out.lines.push_back(std::move(line));
    }
    return out;
  }

 private:
  // The place of the function in a frame.
  struct Place {
    FunctionLines::Line* line = nullptr;
    uint32_t address = kNone;   // index into line->addresses; kNone: the kind of the frame has no addresses
    bool is_innermost = false;  // nothing is inlined there
  };

  absl::Status AddDay(store::StoreReader& reader, const AddressFold::DayNodes& nodes,
                      const std::vector<store::ExecutableRow>& rows, const QueryRequest& request) {
    const store::TrieView& trie = nodes.trie;
    ASSIGN_OR_RETURN(const std::vector<uint8_t> used, AddressFold::FindUsedNodes(nodes, request));
    std::vector<uint32_t> place_of_row(trie.frame_rows.size(), kNone);
    std::vector<Place> places = {Place{}};  // [0]: for frames of other functions
    std::vector<uint32_t> nearest(trie.parents.size(), 0);
    size_t looked_up = 0;
    for (size_t i = 1; i < trie.parents.size(); ++i) {
      RETURN_IF_ERROR(CheckCancelledAt(request, i));
      if (used[i] == 0) continue;
      const uint32_t parent = trie.parents[i].value;
      if (trie.frames[i] >= trie.frame_rows.size()) {
        return Error(absl::StatusCode::kDataLoss, "the store is corrupt: a stack frame is not defined");
      }
      uint32_t& place = place_of_row[trie.frames[i]];
      if (place == kNone) {
        const store::FrameRow& frame = trie.frame_rows[trie.frames[i]];
        if (++looked_up % kNamesPerCheck == 0) RETURN_IF_ERROR(CheckCancelled(request));
        ASSIGN_OR_RETURN(const std::string_view own_name, reader.Text(frame.name));
        const Place found = Find(frame, FrameSymbolizer::OwnName(own_name), rows);
        place = found.line == nullptr ? 0 : static_cast<uint32_t>(places.size());
        if (found.line != nullptr) places.push_back(found);
      }
      nearest[i] = place != 0 ? place : nearest[parent];
      if (nearest[i] == 0 || (nodes.counts[i] == 0 && nodes.values[i] == 0)) continue;
      Add(places[nearest[i]], nodes.values[i], nodes.counts[i], place != 0);
    }
    return absl::OkStatus();
  }

  static void Add(const Place& place, uint64_t value, uint64_t count, bool is_leaf) {
    FunctionLines::Line& line = *place.line;
    line.total_value += value;
    line.total_count += count;
    if (place.address != kNone) {
      FunctionLines::Address& address = line.addresses[place.address];
      address.value += value;
      address.count += count;
    }
    if (!is_leaf || !place.is_innermost) return;
    line.self_value += value;
    line.self_count += count;
  }

  Place Find(const store::FrameRow& frame, std::string_view own_name, const std::vector<store::ExecutableRow>& rows) {
    if (frame.executable.value >= rows.size()) return {};
    const store::ExecutableRow& executable = rows[frame.executable.value];
    if (!function_.executable.empty() && BaseName(executable.path) != function_.executable) return {};
    const FrameSymbolizer::Place in_table = symbolizer_.Find(frame, executable.id);
    Place place;
    bool is_innermost = true;
    FrameSymbolizer::ForEachFrame(in_table, frame, own_name, executable.path, [&](const SymbolTable::Frame& of) {
      const bool is_function = own_name.empty() ? !of.name.empty() && demangled_.Demangle(of.name) == function_.name
                                                : own_name == function_.name;
      if (is_function) {
        place.line = &lines_[{std::string(of.file), of.line}];
        place.is_innermost = is_innermost;
        return false;
      }
      is_innermost = false;
      return true;
    });
    if (place.line == nullptr) return {};
    if (!RowOf(frame.kind).has_address) return place;
    auto& addresses = place.line->addresses;
    const auto [known, added] =
        address_of_.try_emplace({place.line, executable.id, frame.address}, static_cast<uint32_t>(addresses.size()));
    if (added) addresses.push_back({.id = executable.id, .address = frame.address});
    place.address = known->second;
    return place;
  }

  FrameSymbolizer symbolizer_;
  DemangleCache& demangled_;
  const FunctionLinesRequest& function_;
  std::map<std::pair<std::string, uint32_t>, FunctionLines::Line> lines_;
  // Index into a line's addresses.
  absl::flat_hash_map<std::tuple<const FunctionLines::Line*, ExecutableId, uint64_t>, uint32_t> address_of_;
};

}  // namespace

absl::StatusOr<FunctionLines> MakeLines(const QueryContext& context, const FunctionLinesRequest& function) {
  LineBuilder builder(context.symbols, context.demangled, function);
  const absl::Status visited = ForEachShard(context, [&](store::StoreReader& reader) -> absl::Status {
    AddressFold fold(reader, context);
    RETURN_IF_ERROR(fold.Scan());
    return builder.AddShard(reader, fold, context.request);
  });
  RETURN_IF_ERROR(visited);
  return std::move(builder).Take();
}

}  // namespace tributary
