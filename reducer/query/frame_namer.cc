#include "reducer/query/frame_namer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/status.h"
#include "reducer/metadata/labels.h"
#include "symbols/demangle.h"

namespace tributary {
namespace {

constexpr std::string_view kUnknown = "[unknown]";
constexpr std::string_view kKernel = "[kernel]";

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

std::string DemangleCache::Demangle(std::string_view linkage_name) {
  // Mangled names start with an underscore: C names, most of a kernel's, need no cache.
  if (!linkage_name.starts_with('_')) return std::string(linkage_name);
  if (linkage_name.size() > kNameBytesMax) return ::tributary::Demangle(linkage_name);
  {
    std::lock_guard lock(mutex_);
    if (auto it = names_.find(ToAbsl(linkage_name)); it != names_.end()) return it->second;
  }
  std::string name = ::tributary::Demangle(linkage_name);
  if (name.size() > kNameBytesMax) return name;
  std::lock_guard lock(mutex_);
  if (names_.size() >= kEntriesMax) names_.clear();
  names_.try_emplace(std::string(linkage_name), name);
  return name;
}

size_t DemangleCache::size() const {
  std::lock_guard lock(mutex_);
  return names_.size();
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

std::span<const FunctionNo> FrameNamer::Functions(uint32_t executable, const store::FrameRow& frame) {
  Executable& file = executables_[executable];
  const FlameGraph::Kind kind = KindOf(frame.kind);
  if (names_ == FrameNames::kFunction && kind != FlameGraph::Kind::kUnknown) {
    if (!std::exchange(file.asked, true)) file.table = symbols_.Get(file.id);
    if (file.table != nullptr) {
      const uint64_t address = frame.address - (frame.is_caller && frame.address != 0 ? 1 : 0);
      const uint32_t row = file.table->FindRow(address);
      if (row != SymbolTable::kNoRow) {
        const Chain& chain = ChainOf(executable, row, kind);
        if (chain.count > 0) return std::span(chained_).subspan(chain.first, chain.count);
      }
    }
  }
  single_ = WithoutSymbols(file, frame, kind);
  return {&single_, 1};
}

const FrameNamer::Chain& FrameNamer::ChainOf(uint32_t executable, uint32_t row, FlameGraph::Kind kind) {
  const Executable& file = executables_[executable];
  auto [it, added] = by_node_.try_emplace(uint64_t{executable} << 32 | file.table->node(row));
  if (!added) return it->second;
  Chain& chain = it->second;
  chain.first = static_cast<uint32_t>(chained_.size());
  file.table->ForEachFrame(row, [&](const SymbolTable::Frame& frame) {
    if (frame.node == 0) return false;  // a line without a function
    const std::string name = frame.name.empty()
                                 ? fmt::format("{}+0x{:x}", file.BaseName(kind), file.table->StartOf(frame.node))
                                 : demangled_.Demangle(frame.name);
    const bool inlined = frame.inlined && kind == FlameGraph::Kind::kNative;
    chained_.push_back(trie_.InternFunction(inlined ? FlameGraph::Kind::kInlined : kind, name, file.BaseName(kind)));
    return true;
  });
  chain.count = static_cast<uint32_t>(chained_.size()) - chain.first;
  std::reverse(chained_.begin() + chain.first, chained_.end());
  return chain;
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
