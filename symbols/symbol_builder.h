#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "elf/address_range.h"
#include "symbols/string_pool.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The code of one function, [address, address + size).
struct SymbolRange {
  uint64_t address = 0;
  uint64_t size = 0;
  std::string_view name;  // linkage name, not demangled; the builder copies it
};

// A row of a line table.
struct SymbolLine {
  uint64_t address = 0;
  uint32_t file = 0;  // string
  uint32_t line = 0;
};

// Builds a SymbolTable from functions, inlined calls and lines, which may be added in any order. A claim says that a
// range of code belongs to a function or to an inlined call. If several claims cover the same code, the claim of the
// better layer is used. If they have the same layer, the claim that begins at the higher address is used, and then the
// more deeply inlined call. Of functions with the same code, the function that was added first is used. Data above the
// table's limits is ignored and counted. Needs about 24 bytes of memory per claim and 16 per line.
class SymbolTableBuilder {
 public:
  // The source of a claim, the worst source first. A claim is used only where no better claim covers the code.
  enum class Layer : uint8_t { kFunctionBounds, kSymbols, kDebugInfo };

  // Ignores code outside of `window`. In the table, addresses are relative to the begin of `window`.
  explicit SymbolTableBuilder(AddressRange window = {0, UINT64_MAX});

  // Returns the id of the string, which is cut to SymbolTable::kNameBytesMax. Returns 0 for "", and if a limit is
  // reached.
  uint32_t AddString(std::string_view text);
  // Adds a function (if `parent` is 0), or a call that was inlined into `parent` at this file and line. `name` and
  // `call_file` are ids of strings. Returns the id of the node, or 0 if a limit is reached.
  uint32_t AddNode(uint32_t name, uint32_t parent = 0, uint32_t call_file = 0, uint32_t call_line = 0);
  void AddCode(uint64_t begin, uint64_t end, uint32_t depth, uint32_t node, Layer layer);
  // Adds lines. The addresses of `rows` must ascend. The last row ends at `end`.
  void AddLines(std::span<const SymbolLine> rows, uint64_t end);
  void AddFunction(const SymbolRange& range, Layer layer);
  // Adds the name of a linker's symbol at this address. An address may have several such names. If a function from
  // debug information begins at this address and has none of these names, the function gets the name of the symbol that
  // AddFunction() added there. This is necessary because compilers omit some linkage names in debug information, and
  // write names that no symbol has (_ZN…C4…, for the common code of constructors).
  void AddSymbolName(uint64_t address, std::string_view name);

  // Sets the kind of a range of code that kernel-collectors report as native. Returns false if the range overlaps
  // another earlier range, or if there are too many ranges. The same range may be set again.
  bool AddCodeKind(const AddressRange& code, FrameKind kind);
  // Adds to left_out(), for data that could not be added.
  void AddLeftOut(uint64_t count) { left_out_ += count; }
  uint64_t left_out() const { return left_out_; }
  // Builds the table. Do not use the builder afterwards.
  std::shared_ptr<const SymbolTable> Build(const ExecutableId& id, SymbolSource source);

 private:
  struct Claim {
    uint64_t begin, end;
    uint32_t node;
    uint16_t depth;
    Layer layer;
  };
  struct LineStep {
    uint64_t address;
    uint32_t place;
  };
  struct LineRun {
    uint64_t begin, end;
    size_t first, count;  // indices in lines_
  };
  struct Piece {  // from `begin` up to the begin of the next piece
    uint64_t begin;
    uint32_t node;
  };
  struct Row {
    uint64_t address;
    uint32_t node, place;
  };
  struct NodeKey {
    uint32_t name, parent, place;
    friend bool operator==(const NodeKey&, const NodeKey&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const NodeKey& key) {
      return H::combine(std::move(h), key.name, key.parent, key.place);
    }
  };

  uint32_t AddPlace(uint32_t file, uint32_t line);
  void SpellAsSymbols();
  std::vector<Piece> PaintClaims();
  std::vector<LineStep> JoinLines();
  std::vector<Row> Merge(const std::vector<Piece>& pieces, const std::vector<LineStep>& lines);
  std::string Write(const ExecutableId& id, SymbolSource source, std::vector<Row> rows);

  const AddressRange window_;
  StringPool strings_;
  std::vector<flat::Place> places_;
  absl::flat_hash_map<uint64_t, uint32_t> place_ids_;
  std::vector<flat::Node> nodes_;
  struct Start {
    uint64_t address;
    Layer layer;
  };
  std::vector<Start> starts_;              // start addresses of functions, in order of their nodes
  absl::flat_hash_set<uint64_t> spelled_;  // hashes of (address, name)
  absl::flat_hash_map<NodeKey, uint32_t> inlined_ids_;
  std::vector<Claim> claims_;
  std::vector<LineStep> lines_;
  std::vector<LineRun> runs_;
  std::vector<flat::CodeKind> code_kinds_;
  uint64_t left_out_ = 0;
};

// Builds a table that contains only functions, without lines and inlined calls.
std::shared_ptr<const SymbolTable> BuildSymbolTable(const ExecutableId& id, SymbolSource source,
                                                    const std::vector<SymbolRange>& ranges);

}  // namespace tributary
