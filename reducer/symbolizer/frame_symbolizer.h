#pragma once

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
#include "reducer/store/store.h"
#include "symbols/symbol_table.h"

namespace tributary {

// A symbol table by executable; nullptr: none (yet).
using SymbolLookup = std::function<std::shared_ptr<const SymbolTable>(const ExecutableId&)>;

// What stored frames are: the way from a frame row to its chain of name, file, line and inlined calls, and to its kind.
// All that shows or exports frames goes through it. Tables are held from their first use on, so that one answer is made
// by one state of the symbols. One thread.
class FrameSymbolizer {
 public:
  explicit FrameSymbolizer(SymbolLookup lookup) : lookup_(std::move(lookup)) {}

  // Where a frame is in its executable's table, and what it is by that.
  struct Place {
    uint64_t address = 0;  // as it is looked up: of a caller, in the call
    const SymbolTable* table = nullptr;
    uint32_t row = SymbolTable::kNoRow;  // nothing is known of the address
    FrameKind kind = FrameKind::kUnknown;
  };
  Place Find(const store::FrameRow& frame, const ExecutableId& id);
  static uint64_t AddressOf(const store::FrameRow& frame) { return LookupAddress(frame.address, frame.is_caller); }
  // The same for many of one executable, in a fraction of the time: `wanted` are indices of `frames`, and `places` has
  // one for each of them.
  void Find(const ExecutableId& id, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
            std::span<Place> places);

  // What a frame came with is its name, as it is, and all there is of it; "": its table names it. `text` is that of
  // frame.name, which a sender may have made as long as it likes.
  static std::string_view OwnName(std::string_view text) { return CutUtf8(text, kFrameNameBytesMax); }

  // The chain of a frame: from the innermost inlined call to the function itself, until visit(SymbolTable::Frame) is
  // false. `own_name` is OwnName of its text. Nothing where no name is known.
  template <typename Visit>
  static void ForEachFrame(const Place& place, const store::FrameRow& frame, std::string_view own_name, Visit&& visit) {
    if (!own_name.empty()) {
      visit(SymbolTable::Frame{.name = own_name, .line = frame.position});
    } else if (place.row != SymbolTable::kNoRow) {
      place.table->ForEachFrame(place.row, visit);
    }
  }

 private:
  const SymbolTable* TableOf(const ExecutableId& id);
  static FrameKind KindOf(const store::FrameRow& frame, uint64_t address, const SymbolTable* table);

  const SymbolLookup lookup_;
  absl::flat_hash_map<ExecutableId, std::shared_ptr<const SymbolTable>> tables_;
  std::vector<uint64_t> addresses_;
  std::vector<uint32_t> rows_;
};

}  // namespace tributary
