#include "symbols/symbol_builder.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

#include "absl/hash/hash.h"
#include "base/status.h"
#include "symbols/flat_writer.h"

namespace tributary {
namespace {

constexpr size_t kNodesMax = 1u << 28, kStringsMax = 1u << 27, kPlacesMax = 1u << 27;
constexpr size_t kClaimsMax = 1u << 26, kLinesMax = 1u << 27;
constexpr uint64_t kNoStart = std::numeric_limits<uint64_t>::max();  // of a function without code

}  // namespace

SymbolTableBuilder::SymbolTableBuilder(AddressRange window)
    : window_(window), strings_(kStringsMax, SymbolTable::kStringBytesMax) {
  places_.push_back({});
  place_ids_.emplace(0, 0);
  nodes_.push_back({});
  starts_.push_back({kNoStart, Layer::kSymbols});
}

uint32_t SymbolTableBuilder::AddString(std::string_view text) {
  const uint32_t id = strings_.Intern(text.substr(0, SymbolTable::kNameBytesMax));
  if (id == 0 && !text.empty()) ++left_out_;
  return id;
}

uint32_t SymbolTableBuilder::AddPlace(uint32_t file, uint32_t line) {
  auto [it, added] = place_ids_.try_emplace(uint64_t{file} << 32 | line, static_cast<uint32_t>(places_.size()));
  if (!added) return it->second;
  if (places_.size() == kPlacesMax) {
    place_ids_.erase(it);
    ++left_out_;
    return 0;
  }
  places_.push_back({file, line});
  return it->second;
}

uint32_t SymbolTableBuilder::AddNode(uint32_t name, uint32_t parent, uint32_t call_file, uint32_t call_line) {
  if (nodes_.size() == kNodesMax) {
    ++left_out_;
    return 0;
  }
  const auto id = static_cast<uint32_t>(nodes_.size());
  uint32_t place = 0;
  if (parent != 0) {
    place = AddPlace(call_file, call_line);
    auto [it, added] = inlined_ids_.try_emplace(NodeKey{name, parent, place}, id);
    if (!added) return it->second;
  }
  nodes_.push_back({name, parent, place});
  starts_.push_back({kNoStart, Layer::kSymbols});
  return id;
}

void SymbolTableBuilder::AddCode(uint64_t begin, uint64_t end, uint32_t depth, uint32_t node, Layer layer) {
  begin = std::max(begin, window_.begin);
  end = std::min(end, window_.end);
  if (begin >= end || node == 0) return;
  begin -= window_.begin;
  end -= window_.begin;
  if (claims_.size() == kClaimsMax) {
    ++left_out_;
    return;
  }
  if (nodes_[node].parent == 0 && starts_[node].address == kNoStart) starts_[node] = {begin, layer};
  claims_.push_back({begin, end, node, static_cast<uint16_t>(std::min<uint32_t>(depth, UINT16_MAX)), layer});
}

void SymbolTableBuilder::AddLines(std::span<const SymbolLine> rows, uint64_t end) {
  // Rows before the window matter only for the begin of the window.
  while (rows.size() > 1 && rows[1].address <= window_.begin) rows = rows.subspan(1);
  end = std::min(end, window_.end);
  if (rows.empty() || std::max(rows.front().address, window_.begin) >= end) return;
  if (rows.size() > kLinesMax - lines_.size()) {
    left_out_ += rows.size();
    return;
  }
  auto within = [this](uint64_t address) { return std::clamp(address, window_.begin, window_.end) - window_.begin; };
  runs_.push_back({within(rows.front().address), within(end), lines_.size(), rows.size()});
  for (const SymbolLine& row : rows) lines_.push_back({within(row.address), AddPlace(row.file, row.line)});
}

void SymbolTableBuilder::AddFunction(const SymbolRange& range, Layer layer) {
  const uint64_t size = std::min(range.size, UINT64_MAX - range.address);
  if (range.address >= window_.end || range.address + size <= window_.begin) return;
  AddCode(range.address, range.address + size, 0, AddNode(AddString(range.name)), layer);
}

void SymbolTableBuilder::AddSymbolName(uint64_t address, std::string_view name) {
  spelled_.insert(absl::HashOf(address - window_.begin, ToAbsl(name)));
}

void SymbolTableBuilder::SpellAsSymbols() {
  auto is_debug = [](const Start& start) { return start.layer == Layer::kDebugInfo; };
  if (std::none_of(starts_.begin(), starts_.end(), is_debug)) return;
  absl::flat_hash_map<uint64_t, uint32_t> symbols;
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent == 0 && starts_[i].layer == Layer::kSymbols)
      symbols.emplace(starts_[i].address, nodes_[i].name);
  }
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent != 0 || starts_[i].layer != Layer::kDebugInfo) continue;
    const auto symbol = symbols.find(starts_[i].address);
    if (symbol == symbols.end()) continue;
    const uint64_t spelled = absl::HashOf(starts_[i].address, ToAbsl(strings_.at(nodes_[i].name)));
    if (!spelled_.contains(spelled)) nodes_[i].name = symbol->second;
  }
  spelled_ = {};
}

// Turns claims, which may overlap, into pieces, which do not.
std::vector<SymbolTableBuilder::Piece> SymbolTableBuilder::PaintClaims() {
  // Order of claims with the same begin: the worse layer first, and a function before the calls inlined into it. So the
  // better and the inner claims are painted over the others.
  std::stable_sort(claims_.begin(), claims_.end(), [](const Claim& a, const Claim& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.layer != b.layer) return a.layer < b.layer;
    return a.depth != b.depth ? a.depth < b.depth : a.end > b.end;
  });
  std::vector<Piece> pieces;
  auto paint = [&](uint64_t begin, uint32_t node) {
    if (!pieces.empty() && pieces.back().begin == begin) pieces.pop_back();
    if (pieces.empty() ? node != 0 : pieces.back().node != node) pieces.push_back({begin, node});
  };
  struct Open {
    uint64_t begin, end;
    uint32_t node;
    uint16_t depth;
    Layer layer;
  };
  std::vector<Open> open;
  // Closes all claims that end at `limit` or before. Where an inner claim ends, the claim around it shows again.
  auto close_up_to = [&](uint64_t limit) {
    while (!open.empty() && open.back().end <= limit) {
      const uint64_t end = open.back().end;
      while (!open.empty() && open.back().end <= end) open.pop_back();
      paint(end, open.empty() ? 0 : open.back().node);
    }
  };
  absl::flat_hash_set<uint32_t> duplicates;
  for (const Claim& claim : claims_) {
    close_up_to(claim.begin);
    // If two units have the same function, the first one is used, with the calls inlined into it there.
    const bool again = !open.empty() && open.back().layer == claim.layer && open.back().depth == 0 &&
                       claim.depth == 0 && open.back().begin == claim.begin && open.back().end == claim.end;
    if (again || (claim.depth > 0 && duplicates.contains(nodes_[claim.node].parent))) {
      duplicates.insert(claim.node);
      continue;
    }
    // A claim of a worse source within a claim of a better source lies below it.
    auto at = open.end();
    while (at != open.begin() && std::prev(at)->layer > claim.layer) --at;
    const bool on_top = at == open.end();
    open.insert(at, {claim.begin, claim.end, claim.node, claim.depth, claim.layer});
    if (on_top) paint(claim.begin, claim.node);
  }
  close_up_to(UINT64_MAX);
  claims_ = {};
  return pieces;
}

// Joins the runs in order. Each run begins where the previous run ended, or later.
std::vector<SymbolTableBuilder::LineStep> SymbolTableBuilder::JoinLines() {
  std::stable_sort(runs_.begin(), runs_.end(), [](const LineRun& a, const LineRun& b) { return a.begin < b.begin; });
  std::vector<LineStep> steps;
  steps.reserve(lines_.size() + runs_.size());
  uint64_t done = 0;
  for (const LineRun& run : runs_) {
    if (run.end <= done) continue;
    for (size_t i = run.first; i < run.first + run.count; ++i) {
      const LineStep& line = lines_[i];
      const uint64_t next = i + 1 < run.first + run.count ? lines_[i + 1].address : run.end;
      if (next <= done || line.address >= run.end) continue;
      const uint64_t address = std::max(line.address, done);
      if (!steps.empty() && steps.back().address == address) steps.pop_back();
      steps.push_back({address, line.place});
    }
    done = run.end;
    steps.push_back({done, 0});
  }
  lines_ = {};
  runs_ = {};
  return steps;
}

std::vector<SymbolTableBuilder::Row> SymbolTableBuilder::Merge(const std::vector<Piece>& pieces,
                                                               const std::vector<LineStep>& lines) {
  std::vector<Row> rows;
  rows.reserve(pieces.size() + lines.size());
  size_t piece = 0, line = 0;
  uint32_t node = 0, place = 0;
  while (piece < pieces.size() || line < lines.size()) {
    uint64_t address = UINT64_MAX;
    if (piece < pieces.size()) address = pieces[piece].begin;
    if (line < lines.size()) address = std::min(address, lines[line].address);
    if (piece < pieces.size() && pieces[piece].begin == address) node = pieces[piece++].node;
    if (line < lines.size() && lines[line].address == address) place = lines[line++].place;
    if (rows.empty() ? node != 0 || place != 0 : rows.back().node != node || rows.back().place != place) {
      rows.push_back({address, node, place});
    }
  }
  if (rows.size() > SymbolTable::kRowsMax) {
    left_out_ += rows.size() - SymbolTable::kRowsMax;
    rows.resize(SymbolTable::kRowsMax);
  }
  return rows;
}

std::shared_ptr<const SymbolTable> SymbolTableBuilder::Build(const ExecutableId& id, SymbolSource source) {
  SpellAsSymbols();
  std::vector<Row> rows = Merge(PaintClaims(), JoinLines());
  absl::StatusOr<std::shared_ptr<const SymbolTable>> table = SymbolTable::FromBytes(Write(id, source, std::move(rows)));
  TRIBUTARY_CHECK(table.ok());
  return *std::move(table);
}

bool SymbolTableBuilder::AddCodeKind(const AddressRange& code, FrameKind kind) {
  const uint64_t begin = std::max(code.begin, window_.begin), end = std::min(code.end, window_.end);
  if (begin >= end) return true;
  const flat::CodeKind added{begin - window_.begin, end - window_.begin, static_cast<uint32_t>(kind), 0};
  const auto at = std::lower_bound(code_kinds_.begin(), code_kinds_.end(), added.begin,
                                   [](const flat::CodeKind& a, uint64_t wanted) { return a.end <= wanted; });
  if (at != code_kinds_.end() && at->begin < added.end) return at->begin == added.begin && at->end == added.end;
  if (code_kinds_.size() == SymbolTable::kCodeKindsMax) return false;
  code_kinds_.insert(at, added);
  return true;
}

// Frees each form of the data as soon as the next form exists: nodes make tables of a hundred thousand symbols.
std::string SymbolTableBuilder::Write(const ExecutableId& id, SymbolSource source, std::vector<Row> rows) {
  FlatContents contents;
  contents.row_addresses.reserve(rows.size());
  contents.row_nodes.reserve(rows.size());
  contents.row_places.reserve(rows.size());
  contents.id = id;
  contents.source = source;
  for (const Row& row : rows) {
    if (contents.segments.empty() || row.address - contents.segments.back().base > UINT32_MAX) {
      contents.segments.push_back({row.address, static_cast<uint32_t>(contents.row_addresses.size()), 0});
    }
    ++contents.segments.back().rows;
    contents.row_addresses.push_back(static_cast<uint32_t>(row.address - contents.segments.back().base));
    contents.row_nodes.push_back(row.node);
    contents.row_places.push_back(row.place);
  }
  rows = {};
  for (size_t i = 1; i < nodes_.size(); ++i) {
    if (nodes_[i].parent != 0) continue;
    nodes_[i].place = static_cast<uint32_t>(contents.starts.size());
    contents.starts.push_back(starts_[i].address);
  }
  starts_ = {};
  contents.nodes = std::move(nodes_);
  contents.places = std::move(places_);
  contents.code_kinds = std::move(code_kinds_);
  std::tie(contents.string_offsets, contents.string_bytes) = strings_.Take();
  return WriteFlat(contents);
}

std::shared_ptr<const SymbolTable> BuildSymbolTable(const ExecutableId& id, SymbolSource source,
                                                    const std::vector<SymbolRange>& ranges) {
  SymbolTableBuilder builder;
  for (const SymbolRange& range : ranges) builder.AddFunction(range, SymbolTableBuilder::Layer::kSymbols);
  return builder.Build(id, source);
}

}  // namespace tributary
