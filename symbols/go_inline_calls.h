#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "elf/elf_file.h"
#include "elf/file_window.h"
#include "symbols/go_table_bytes.h"

namespace tributary {

// What is known of one function of Go's table. The steps say which file, which line and which call of its tree the code
// was made of.
struct GoFunction {
  uint64_t begin = 0;  // address
  uint32_t size = 0;
  uint32_t node = 0;
  uint32_t unit = 0;  // where its files' numbers begin
  uint64_t tree = 0;  // address; 0: nothing was inlined
  std::vector<GoStep> files, lines, calls;
};

// Nodes of the calls that were inlined into functions: records of a tree, each with the called function's name and an
// instruction (`parentPc`) whose file, line and call are the place where it was called from. Records lie beside the
// table, or in it; before Go 1.20 they are 20 bytes (parent, file and line besides), then 16 (source: `inlinedCall` of
// Go's runtime/symtab.go and symtabinl.go).
class GoInlineCalls {
 public:
  static constexpr size_t kNestingMax = 1024;
  static constexpr int32_t kRecordsMax = 1 << 20;  // of one tree

  struct Call {
    uint32_t node = 0, depth = 0;
  };

  GoInlineCalls(ElfFile& file, GoTableBytes& table, SymbolTableBuilder& builder);

  // The function that is asked about from here on; it stays until the next one.
  void Enter(const GoFunction& function);
  // A record by its number. What cannot be read, or is nested too deeply, is the function's own code; what is inlined
  // into itself is so into the function.
  Call Resolve(int32_t record);
  // Of the function.
  bool malformed() const { return malformed_; }
  size_t count() const { return known_.size(); }

 private:
  struct Record {
    uint32_t name, place;
  };
  bool ReadRecord(int32_t record, Record* out);

  ElfFile& file_;
  GoTableBytes& table_;
  SymbolTableBuilder& builder_;
  FileWindow window_;
  const GoFunction* function_ = nullptr;
  bool malformed_ = false;
  absl::flat_hash_map<int32_t, Call> known_;
  std::vector<std::pair<int32_t, Record>> open_;  // from the inner to the outer one
};

}  // namespace tributary
