#include "reducer/query/frame_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kKernel = "[kernel]";
constexpr size_t kAhead = 8;  // of the frame that is named, a later one's chain is fetched from memory

FlameGraph::Kind KindOf(FrameKind kind) {
  switch (kind) {
    case FrameKind::kNative:
      return FlameGraph::Kind::kNative;
    case FrameKind::kKernel:
      return FlameGraph::Kind::kKernel;
    case FrameKind::kUnknown:
      break;
  }
  return FlameGraph::Kind::kUnknown;
}

}  // namespace

std::string_view FrameNamer::Executable::BaseName(FlameGraph::Kind kind) const {
  if (base_name.empty() && kind == FlameGraph::Kind::kKernel) return kKernel;
  return base_name;
}

uint32_t FrameNamer::InternExecutable(const store::ExecutableRow& row) {
  auto next = static_cast<uint32_t>(executables_.size());
  auto [number, added] = [&] {
    if (row.id.known()) {
      auto [it, inserted] = by_id_.try_emplace(row.id, next);
      return std::pair(it->second, inserted);
    }
    auto [it, inserted] = by_path_.try_emplace(row.path, next);
    return std::pair(it->second, inserted);
  }();
  if (added) executables_.push_back(Executable{.id = row.id, .base_name = std::string(BaseName(row.path))});
  return number;
}

const SymbolTable* FrameNamer::TableOf(Executable& file) {
  if (names_ != FrameNames::kFunction) return nullptr;
  if (!std::exchange(file.asked, true)) file.table = symbols_.Get(file.id);
  return file.table.get();
}

void FrameNamer::Name(uint32_t executable, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
                      std::span<Chain> chains) {
  Executable& file = executables_[executable];
  const bool any_mapped = std::any_of(wanted.begin(), wanted.end(), [&](uint32_t frame) {
    return KindOf(frames[frame].kind) != FlameGraph::Kind::kUnknown;
  });
  const SymbolTable* table = any_mapped ? TableOf(file) : nullptr;
  addresses_.clear();
  for (uint32_t frame : wanted) {
    const uint64_t address = frames[frame].address;
    addresses_.push_back(address - (frames[frame].is_caller && address != 0 ? 1 : 0));
  }
  rows_.assign(wanted.size(), SymbolTable::kNoRow);
  if (table != nullptr) table->FindRows(addresses_, rows_);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const store::FrameRow& frame = frames[wanted[i]];
    const FlameGraph::Kind kind = KindOf(frame.kind);
    if (i + kAhead < rows_.size() && rows_[i + kAhead] != SymbolTable::kNoRow) {
      by_node_.prefetch(NodeKey(executable, table->node(rows_[i + kAhead])));
    }
    Chain& chain = chains[wanted[i]];
    chain = {};
    if (rows_[i] != SymbolTable::kNoRow && kind != FlameGraph::Kind::kUnknown)
      chain = ChainOf(executable, rows_[i], kind);
    if (chain.count == 0) {
      chain = {static_cast<uint32_t>(functions_.size()), 1};
      functions_.push_back(WithoutSymbols(file, frame, kind));
    }
  }
}

// What was inlined into something is that something's chain and one more: a walk ends at the first node whose chain is
// known, and each node of a walk has its part of the new one.
FrameNamer::Chain FrameNamer::ChainOf(uint32_t executable, uint32_t row, FlameGraph::Kind kind) {
  const SymbolTable& table = *executables_[executable].table;
  if (auto it = by_node_.find(NodeKey(executable, table.node(row))); it != by_node_.end()) return it->second;
  walked_.clear();
  Chain chain;
  table.ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
    if (frame.node == 0) return false;  // a line without a function
    if (auto it = by_node_.find(NodeKey(executable, frame.node)); it != by_node_.end()) {
      chain = it->second;
      return false;
    }
    walked_.push_back({frame.name, frame.node, frame.inlined});
    return true;
  });
  const uint32_t outer = chain.first;
  chain.first = static_cast<uint32_t>(functions_.size());
  for (uint32_t i = 0; i < chain.count; ++i) functions_.push_back(functions_[outer + i]);
  for (auto frame = walked_.rbegin(); frame != walked_.rend(); ++frame) {
    functions_.push_back(FunctionOf(executable, *frame, kind));
    ++chain.count;
    by_node_.emplace(NodeKey(executable, frame->node), chain);
  }
  return chain;
}

FunctionNo FrameNamer::FunctionOf(uint32_t executable, const Walked& frame, FlameGraph::Kind kind) {
  Executable& file = executables_[executable];
  if (frame.inlined && kind == FlameGraph::Kind::kNative) kind = FlameGraph::Kind::kInlined;
  if (frame.name.empty()) {
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.BaseName(kind), file.table->StartOf(frame.node)),
                                file.BaseName(kind));
  }
  // A table has each name once, and is held: where its bytes are says which it is.
  auto [it, added] = by_name_.try_emplace({frame.name.data(), kind});
  if (added) it->second = trie_.InternFunction(kind, demangled_.Demangle(frame.name), file.BaseName(kind));
  return it->second;
}

FunctionNo FrameNamer::WithoutSymbols(const Executable& file, const store::FrameRow& frame, FlameGraph::Kind kind) {
  const std::string_view base_name = file.BaseName(kind);
  if (names_ == FrameNames::kAddress) {
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), base_name);
  }
  if (kind == FlameGraph::Kind::kUnknown) return trie_.InternFunction(kind, kUnknown, "");
  if (base_name.empty()) {
    if (!file.id.known()) return trie_.InternFunction(FlameGraph::Kind::kUnknown, kUnknown, "");
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), "");
  }
  return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", base_name, frame.address), base_name);
}

}  // namespace tributary
