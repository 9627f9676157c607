#include "reducer/symbolizer/frame_symbolizer.h"

#include <algorithm>

namespace tributary {

const SymbolTable* FrameSymbolizer::TableOf(const ExecutableId& id) {
  if (!id.known()) return nullptr;
  auto [it, added] = tables_.try_emplace(id);
  if (added) it->second = lookup_(id);
  return it->second.get();
}

// Nodes report machine code as native. Its table may know which compiler made it.
FrameKind FrameSymbolizer::KindOf(const store::FrameRow& frame, uint64_t address, const SymbolTable* table) {
  return frame.kind == FrameKind::kNative && table != nullptr ? table->KindOf(address) : frame.kind;
}

FrameSymbolizer::Place FrameSymbolizer::Find(const store::FrameRow& frame, const ExecutableId& id) {
  const uint64_t address = AddressOf(frame);
  const SymbolTable* table = RowOf(frame.kind).has_address ? TableOf(id) : nullptr;
  if (table == nullptr) return {.address = address, .kind = frame.kind};
  return {address, table, table->FindRow(address), KindOf(frame, address, table)};
}

void FrameSymbolizer::Find(const ExecutableId& id, std::span<const store::FrameRow> frames,
                           std::span<const uint32_t> wanted, std::span<Place> places) {
  const bool any_has_address =
      std::any_of(wanted.begin(), wanted.end(), [&](uint32_t frame) { return RowOf(frames[frame].kind).has_address; });
  const SymbolTable* table = any_has_address ? TableOf(id) : nullptr;
  addresses_.clear();
  for (uint32_t frame : wanted) addresses_.push_back(AddressOf(frames[frame]));
  rows_.assign(wanted.size(), SymbolTable::kNoRow);
  if (table != nullptr) table->FindRows(addresses_, rows_);
  for (size_t i = 0; i < wanted.size(); ++i) {
    const store::FrameRow& frame = frames[wanted[i]];
    const bool has_address = RowOf(frame.kind).has_address;
    places[i] = {addresses_[i], table, has_address ? rows_[i] : SymbolTable::kNoRow,
                 KindOf(frame, addresses_[i], table)};
  }
}

}  // namespace tributary
