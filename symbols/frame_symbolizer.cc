#include "symbols/frame_symbolizer.h"

namespace tributary {

const SymbolTable* FrameSymbolizer::TableOf(const ExecutableId& id) {
  if (!id.known()) return nullptr;
  auto [it, added] = tables_.try_emplace(id);
  if (added) it->second = lookup_(id);
  return it->second.get();
}

}  // namespace tributary
