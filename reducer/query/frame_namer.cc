#include "reducer/query/frame_namer.h"

#include <fmt/format.h>

#include <utility>

#include "base/status.h"
#include "reducer/metadata/labels.h"

namespace tributary {
namespace {

constexpr size_t kAhead = 8;  // how many frames ahead the chain of a frame is prefetched

}  // namespace

std::string_view FrameNamer::Executable::BaseName(FrameKind kind) const {
  if (base_name.empty() && RowOf(kind).naming == FrameNaming::kKernel) return kKernelName;
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
  if (added) {
    executables_.push_back(Executable{
        .id = row.id, .path = lines_ ? row.path : std::string(), .base_name = std::string(BaseName(row.path))});
  }
  return number;
}

void FrameNamer::Name(uint32_t executable, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
                      TextLookup text_of, std::span<Chain> chains) {
  const Executable& file = executables_[executable];
  const ExecutableId id = needs_tables_ ? file.id : ExecutableId();
  places_.resize(wanted.size());
  symbolizer_.Find(id, frames, wanted, places_);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const store::FrameRow& frame = frames[wanted[i]];
    const FrameSymbolizer::Place& place = places_[i];
    if (i + kAhead < places_.size() && places_[i + kAhead].row != SymbolTable::kNoRow) {
      by_node_.prefetch(NodeKey(executable, place.table->node(places_[i + kAhead].row)));
    }
    const std::string_view own_name =
        frame.name.value != 0 ? FrameSymbolizer::OwnName(text_of(frame.name)) : std::string_view();
    Chain& chain = chains[wanted[i]];
    chain = {};
    if (own_name.empty() && names_ == FrameNames::kFunction && place.row != SymbolTable::kNoRow) {
      chain = lines_ ? ChainWithLines(file, place) : ChainOf(executable, place);
    }
    if (chain.count == 0) {
      chain = {static_cast<uint32_t>(functions_.size()), 1};
      functions_.push_back(own_name.empty() ? WithoutSymbols(file, frame, place.kind)
                                            : WithOwnName(file, frame, place.kind, own_name));
    }
  }
}

// A chain lists functions from the outermost to the innermost. The chain of an inlined function is the chain of the
// function around it, and then the inlined function itself. So a walk ends at the first node with a known chain, and
// each node of the walk uses a part of the new chain.
FrameNamer::Chain FrameNamer::ChainOf(uint32_t executable, const FrameSymbolizer::Place& place) {
  const SymbolTable& table = *place.table;
  if (auto it = by_node_.find(NodeKey(executable, table.node(place.row))); it != by_node_.end()) return it->second;
  walked_.clear();
  Chain chain;
  table.ForEachFrame(place.row, [&](const SymbolTable::Frame& frame) {
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
    functions_.push_back(FunctionOf(executables_[executable], *frame, place));
    ++chain.count;
    by_node_.emplace(NodeKey(executable, frame->node), chain);
  }
  return chain;
}

// Lines differ from address to address, so these chains are not shared.
FrameNamer::Chain FrameNamer::ChainWithLines(const Executable& file, const FrameSymbolizer::Place& place) {
  walked_.clear();
  place.table->ForEachFrame(place.row, [&](const SymbolTable::Frame& frame) {
    if (frame.node == 0) return false;  // a line without a function
    walked_.push_back({frame.name, frame.node, frame.inlined, {frame.file, frame.line}});
    return true;
  });
  const Chain chain{static_cast<uint32_t>(functions_.size()), static_cast<uint32_t>(walked_.size())};
  for (auto frame = walked_.rbegin(); frame != walked_.rend(); ++frame) {
    functions_.push_back(FunctionOf(file, *frame, place));
  }
  return chain;
}

FunctionNo FrameNamer::FunctionOf(const Executable& file, const Walked& frame, const FrameSymbolizer::Place& place) {
  const bool is_kernel = RowOf(place.kind).naming == FrameNaming::kKernel;
  const FrameKind kind = frame.inlined && !is_kernel ? FrameKind::kInlined : place.kind;
  if (frame.name.empty()) {
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.BaseName(kind), place.table->StartOf(frame.node)),
                                file.BaseName(kind), frame.line);
  }
  if (lines_) {
    return trie_.InternFunction(kind, demangled_.Demangle(frame.name), file.BaseName(kind), frame.line);
  }
  // A table contains each name once, and is kept alive. So the address of the bytes identifies the name.
  auto [it, added] = by_name_.try_emplace({frame.name.data(), kind});
  if (added) it->second = trie_.InternFunction(kind, demangled_.Demangle(frame.name), file.BaseName(kind));
  return it->second;
}

FunctionNo FrameNamer::WithOwnName(const Executable& file, const store::FrameRow& frame, FrameKind kind,
                                   std::string_view own_name) {
  FunctionTrie::Line line;
  if (lines_) line = {FrameSymbolizer::OwnFile(frame.kind, file.path), frame.position};
  return trie_.InternFunction(kind, own_name, file.base_name, line);
}

FunctionNo FrameNamer::WithoutSymbols(const Executable& file, const store::FrameRow& frame, FrameKind kind) {
  const std::string_view base_name = file.BaseName(kind);
  const FrameNaming naming = RowOf(kind).naming;
  if (naming == FrameNaming::kOwn) {
    const std::string_view unnamed = RowOf(kind).unnamed;
    FunctionTrie::Line line;
    if (lines_) line = {file.path, frame.position};
    return trie_.InternFunction(kind, unnamed.empty() ? kUnknownName : unnamed, base_name, line);
  }
  if (names_ == FrameNames::kAddress) {
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), base_name);
  }
  if (naming == FrameNaming::kUnknown) return trie_.InternFunction(kind, kUnknownName, "");
  if (base_name.empty()) {
    if (!file.id.known()) return trie_.InternFunction(FrameKind::kUnknown, kUnknownName, "");
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), "");
  }
  return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", base_name, frame.address), base_name);
}

}  // namespace tributary
