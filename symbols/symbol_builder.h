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

// One function's code, [address, address + size).
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

// Builds a SymbolTable from functions, inlined calls and lines, added in any order. If several functions or calls claim
// the same code, the better layer wins, then the claim that begins later, then the deeper inlined call. Of functions
// with the same code, the one that was added first wins. Data over the table's limits is left out and counted. Memory:
// about 24 bytes per claim, 16 per line.
class SymbolTableBuilder {
 public:
  // Source of a function's claim on code, worst first. A worse claim shows only where there is no better claim.
  enum class Layer : uint8_t { kFunctionBounds, kSymbols, kDebugInfo };

  // Ignores code outside of `window`. Addresses count from the begin of `window`.
  explicit SymbolTableBuilder(AddressRange window = {0, UINT64_MAX});

  // Returns 0 for "", and for a string over a limit.
  uint32_t AddString(std::string_view text);
  // Adds a function (parent 0), or a call inlined into `parent` at this file (a string) and line. Returns 0 if it is
  // over a limit.
  uint32_t AddNode(uint32_t name, uint32_t parent = 0, uint32_t call_file = 0, uint32_t call_line = 0);
  void AddCode(uint64_t begin, uint64_t end, uint32_t depth, uint32_t node, Layer layer);
  // Rows must ascend. The last row ends at `end`.
  void AddLines(std::span<const SymbolLine> rows, uint64_t end);
  void AddFunction(const SymbolRange& range, Layer layer);
  // Adds a name that a linker's symbol gives to an address. An address may have several names. If a function of debug
  // information begins at the address, and its name is not one of these names, it gets the name from AddFunction()
  // instead. Reason: compilers omit some linkage names in debug information, and write some that no symbol has (of
  // constructors' common part, _ZN…C4…).
  void AddSymbolName(uint64_t address, std::string_view name);

  // Marks code as code of `kind`, even if the sampler calls it native. Returns false if the code overlaps other marked
  // code, or if there are too many ranges.
  bool AddCodeKind(const AddressRange& code, FrameKind kind);
  // Counts data that a source could not deliver.
  void AddLeftOut(uint64_t count) { left_out_ += count; }
  uint64_t left_out() const { return left_out_; }
  // Consumes everything that was added.
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
  struct Piece {  // from `begin` to the next piece's begin
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
  std::vector<Start> starts_;              // begins of functions' code, by node
  absl::flat_hash_set<uint64_t> spelled_;  // hashes of (address, name)
  absl::flat_hash_map<NodeKey, uint32_t> inlined_ids_;
  std::vector<Claim> claims_;
  std::vector<LineStep> lines_;
  std::vector<LineRun> runs_;
  std::vector<flat::CodeKind> code_kinds_;
  uint64_t left_out_ = 0;
};

// Builds a table that contains only functions.
std::shared_ptr<const SymbolTable> BuildSymbolTable(const ExecutableId& id, SymbolSource source,
                                                    const std::vector<SymbolRange>& ranges);

}  // namespace tributary
