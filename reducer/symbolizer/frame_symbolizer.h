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

// Returns the symbol table of an executable, or nullptr if there is none (yet).
using SymbolLookup = std::function<std::shared_ptr<const SymbolTable>(const ExecutableId&)>;

// Symbolizes stored frames: turns a frame row into its chain of name, file, line and inlined calls, and into its kind.
// All code that shows or exports frames uses it. It holds tables from their first use on, so that one answer is made
// from one state of the symbols. Use it on one thread.
class FrameSymbolizer {
 public:
  explicit FrameSymbolizer(SymbolLookup lookup) : lookup_(std::move(lookup)) {}

  // The place of a frame in its executable's table, and the kind that follows from the place.
  struct Place {
    uint64_t address = 0;  // as it is looked up: for a caller, inside the call
    const SymbolTable* table = nullptr;
    uint32_t row = SymbolTable::kNoRow;  // kNoRow: the address is unknown
    FrameKind kind = FrameKind::kUnknown;
  };
  Place Find(const store::FrameRow& frame, const ExecutableId& id);
  static uint64_t AddressOf(const store::FrameRow& frame) { return LookupAddress(frame.address, frame.is_caller); }
  // Does the same for many frames of one executable, in a fraction of the time. `wanted` has indices of `frames`, and
  // `places` has one entry for each of them.
  void Find(const ExecutableId& id, std::span<const store::FrameRow> frames, std::span<const uint32_t> wanted,
            std::span<Place> places);

  // Returns the name that a frame was sent with. If it is not empty, it is the whole name, and the table is not used.
  // "": the table names the frame. `text` is the text of frame.name, which a sender may have made as long as it likes.
  static std::string_view OwnName(std::string_view text) { return CutUtf8(text, kFrameNameBytesMax); }

  // Visits the chain of a frame: from the innermost inlined call to the function itself, until
  // visit(SymbolTable::Frame) returns false. `own_name` is OwnName of the frame's text. Visits nothing if no name is
  // known.
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
