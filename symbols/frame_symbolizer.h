#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/utf8.h"
#include "profile/executable_id.h"
#include "profile/model.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Returns the symbol table of an executable, or nullptr if there is none.
using SymbolLookup = std::function<std::shared_ptr<const SymbolTable>(const ExecutableId&)>;

// Symbolizes frames: finds the function, file and line of a frame, the functions inlined there, and the frame's kind.
// All code that shows or exports frames uses it. `AnyFrame` is a Frame of a dictionary (profile/model.h), or a FrameRow
// of the reducer's store, which has the same members. A FrameSymbolizer keeps each table from its first use on. So one
// query uses the same tables throughout, even if newer tables arrive. Use it on one thread.
class FrameSymbolizer {
 public:
  explicit FrameSymbolizer(SymbolLookup lookup) : lookup_(std::move(lookup)) {}

  // Where a frame is in the symbol table of its executable, and the kind of the frame according to the table.
  struct Place {
    uint64_t address = 0;  // the address that is looked up; for a caller, it is inside the call instruction
    const SymbolTable* table = nullptr;
    uint32_t row = SymbolTable::kNoRow;  // kNoRow: the address is not in the table
    FrameKind kind = FrameKind::kUnknown;
  };
  template <typename AnyFrame>
  Place Find(const AnyFrame& frame, const ExecutableId& id) {
    const uint64_t address = AddressOf(frame);
    const SymbolTable* table = RowOf(frame.kind).has_address ? TableOf(id) : nullptr;
    if (table == nullptr) return {.address = address, .kind = frame.kind};
    return {address, table, table->FindRow(address), KindOf(frame.kind, address, table)};
  }
  template <typename AnyFrame>
  static uint64_t AddressOf(const AnyFrame& frame) {
    return LookupAddress(frame.address, frame.is_caller);
  }
  // Finds many frames of one executable. This is much faster than finding them one by one. Writes the place of
  // `frames[wanted[i]]` to `places[i]`. `Frames`: a vector or a span of AnyFrame.
  template <typename Frames>
  void Find(const ExecutableId& id, const Frames& frames, std::span<const uint32_t> wanted, std::span<Place> places) {
    const bool any_has_address = std::any_of(wanted.begin(), wanted.end(),
                                             [&](uint32_t frame) { return RowOf(frames[frame].kind).has_address; });
    const SymbolTable* table = any_has_address ? TableOf(id) : nullptr;
    addresses_.clear();
    for (uint32_t frame : wanted) addresses_.push_back(AddressOf(frames[frame]));
    rows_.assign(wanted.size(), SymbolTable::kNoRow);
    if (table != nullptr) table->FindRows(addresses_, rows_);
    for (size_t i = 0; i < wanted.size(); ++i) {
      const FrameKind kind = frames[wanted[i]].kind;
      places[i] = {addresses_[i], table, RowOf(kind).has_address ? rows_[i] : SymbolTable::kNoRow,
                   KindOf(kind, addresses_[i], table)};
    }
  }

  // Returns the name that was sent with a frame, or "" if no name was sent. ForEachFrame uses this name instead of the
  // table. `text` is the text of frame.name. The returned name is cut to kFrameNameBytesMax, because the sender may
  // send any length.
  static std::string_view OwnName(std::string_view text) { return CutUtf8(text, kFrameNameBytesMax); }

  // Returns the source file of a frame that was sent with its name. `path`: of its executable. For a kind whose frames
  // always come with their names, this is the source file.
  static std::string_view OwnFile(FrameKind kind, std::string_view path) {
    return RowOf(kind).naming == FrameNaming::kOwn ? path : std::string_view();
  }

  // Calls visit(SymbolTable::Frame) for the innermost function inlined at the frame first, then for its callers, and
  // for the function itself last. Stops if `visit` returns false. `own_name` is the result of OwnName for this frame,
  // `path` the path of the frame's executable. Does not call `visit` if no name was sent, the table has no entry for
  // the frame, and its kind has no name for this case.
  template <typename AnyFrame, typename Visit>
  static void ForEachFrame(const Place& place, const AnyFrame& frame, std::string_view own_name, std::string_view path,
                           Visit&& visit) {
    if (!own_name.empty()) {
      visit(SymbolTable::Frame{.name = own_name, .file = OwnFile(frame.kind, path), .line = frame.position});
    } else if (RowOf(frame.kind).naming == FrameNaming::kOwn) {
      visit(SymbolTable::Frame{.name = RowOf(frame.kind).unnamed, .file = path, .line = frame.position});
    } else if (place.row != SymbolTable::kNoRow) {
      place.table->ForEachFrame(place.row, visit);
    }
  }

 private:
  const SymbolTable* TableOf(const ExecutableId& id);
  // Nodes report machine code as native. Its table may know which compiler made it, but cannot make it other than
  // machine code.
  static FrameKind KindOf(FrameKind kind, uint64_t address, const SymbolTable* table) {
    if (kind != FrameKind::kNative || table == nullptr) return kind;
    const FrameKind known = table->KindOf(address);
    return RowOf(known).has_address ? known : kind;
  }

  const SymbolLookup lookup_;
  absl::flat_hash_map<ExecutableId, std::shared_ptr<const SymbolTable>> tables_;
  std::vector<uint64_t> addresses_;
  std::vector<uint32_t> rows_;
};

}  // namespace tributary
