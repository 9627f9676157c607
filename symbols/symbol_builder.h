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

// Makes a SymbolTable of functions, inlined calls and lines, told in any order. Where code is claimed more than once
// the better layer wins, else what begins later, else what was inlined deeper; of functions that are the same code the
// first. Bounded by the table's caps: what lies past them is left out and counted. Memory: about 24 bytes a claim, 16 a
// line.
class SymbolTableBuilder {
 public:
  // Which source a function's claim on code is from, worst first: a worse one shows only where no better one claims.
  enum class Layer : uint8_t { kFunctionBounds, kSymbols, kDebugInfo };

  // Code that is not in `window` is not told, and addresses count from its begin.
  explicit SymbolTableBuilder(AddressRange window = {0, UINT64_MAX});

  // 0 for "" and for what is over a cap.
  uint32_t AddString(std::string_view text);
  // A function (parent 0) or a call inlined into `parent` at that file (a string) and line. 0: over a cap.
  uint32_t AddNode(uint32_t name, uint32_t parent = 0, uint32_t call_file = 0, uint32_t call_line = 0);
  void AddCode(uint64_t begin, uint64_t end, uint32_t depth, uint32_t node, Layer layer);
  // Rows ascend; the last one ends at `end`.
  void AddLines(std::span<const SymbolLine> rows, uint64_t end);
  void AddFunction(const SymbolRange& range, Layer layer);
  // What a linker's symbol calls an address, be it one name of several. A function of debug information that begins
  // there is called so too, or else as AddFunction calls it: compilers leave linkage names out, and write some that
  // exist nowhere (of constructors' common part, _ZN…C4…).
  void AddSymbolName(uint64_t address, std::string_view name);

  // Code that is of that kind, be it called native by who samples it. False: it overlaps other code of a kind, or is
  // one too many.
  bool AddCodeKind(const AddressRange& code, FrameKind kind);
  // What a source could not tell counts, too.
  void AddLeftOut(uint64_t count) { left_out_ += count; }
  uint64_t left_out() const { return left_out_; }
  // What was added is used up.
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
    size_t first, count;  // of lines_
  };
  struct Piece {  // from `begin` to the next one's
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
  std::vector<Start> starts_;              // of functions' code; by node
  absl::flat_hash_set<uint64_t> spelled_;  // hashes of (address, name)
  absl::flat_hash_map<NodeKey, uint32_t> inlined_ids_;
  std::vector<Claim> claims_;
  std::vector<LineStep> lines_;
  std::vector<LineRun> runs_;
  std::vector<flat::CodeKind> code_kinds_;
  uint64_t left_out_ = 0;
};

// A table of functions alone.
std::shared_ptr<const SymbolTable> BuildSymbolTable(const ExecutableId& id, SymbolSource source,
                                                    const std::vector<SymbolRange>& ranges);

}  // namespace tributary
