#include "reducer/query/frame_namer.h"

#include <fmt/format.h>

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

FunctionNo FrameNamer::Function(uint32_t executable, const store::FrameRow& frame) {
  Executable& file = executables_[executable];
  FlameGraph::Kind kind = KindOf(frame.kind);
  std::string_view base_name = file.base_name;
  if (base_name.empty() && kind == FlameGraph::Kind::kKernel) base_name = kKernel;
  if (names_ == FrameNames::kAddress) {
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), base_name);
  }
  if (kind == FlameGraph::Kind::kUnknown) return trie_.InternFunction(kind, kUnknown, "");

  if (!file.asked) {
    file.asked = true;
    file.table = symbols_.Get(file.id);
  }
  if (file.table != nullptr) {
    uint64_t address = frame.address - (frame.is_caller && frame.address != 0 ? 1 : 0);
    if (std::optional<SymbolTable::Match> match = file.table->Find(address)) {
      uint64_t key = uint64_t{executable} << 32 | match->index;
      if (auto it = by_range_.find(key); it != by_range_.end()) return it->second;
      FunctionNo function = trie_.InternFunction(kind, demangled_.Demangle(match->name), base_name);
      by_range_.emplace(key, function);
      return function;
    }
  }
  if (base_name.empty()) {
    if (!file.id.known()) return trie_.InternFunction(FlameGraph::Kind::kUnknown, kUnknown, "");
    return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", file.id.ToString(), frame.address), "");
  }
  return trie_.InternFunction(kind, fmt::format("{}+0x{:x}", base_name, frame.address), base_name);
}

}  // namespace tributary
