#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "elf/elf_file.h"
#include "elf/file_window.h"
#include "symbols/go_table_bytes.h"

namespace tributary {

// One function of Go's table (elf/go_table.h). Its steps contain the file, the line and the inlined call for each range
// of the function's code.
struct GoFunction {
  uint64_t begin = 0;  // address
  uint32_t size = 0;
  uint32_t node = 0;
  uint32_t unit = 0;  // added to a file number: the index in GoTableHeader::units
  uint64_t tree = 0;  // address of its tree of inlined calls; 0: no inlined calls
  std::vector<GoStep> files, lines, calls;
};

// Makes symbol table nodes for the calls that were inlined into Go functions. Go's table has a tree of inlined calls
// for each function. Each call is one record of this tree. A record contains the name of the called function and the
// address of an instruction (`parentPc`). The file, line and inlined call at this instruction are the place of the
// call. The trees are inside Go's table, or next to it. Before Go 1.20 a record had 20 bytes, which include its parent,
// file and line. Since Go 1.20 it has 16 bytes (source: `inlinedCall` in Go's runtime/symtab.go and symtabinl.go).
class GoInlineCalls {
 public:
  static constexpr size_t kNestingMax = 1024;
  static constexpr int32_t kRecordsMax = 1 << 20;  // per tree

  struct Call {
    uint32_t node = 0, depth = 0;
  };

  GoInlineCalls(ElfFile& file, GoTableBytes& table, SymbolTableBuilder& builder);

  // Sets the function for the next calls of Resolve(). The function must live until the next Enter().
  void Enter(const GoFunction& function);
  // Returns the call with this record number. If the record cannot be read, returns the function itself. If a record
  // around it cannot be read, is inlined into itself, or is kNestingMax levels away, the next call inside that record
  // counts as inlined into the function.
  Call Resolve(int32_t record);
  // Returns true if the current function has a malformed record.
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
  std::vector<std::pair<int32_t, Record>> open_;  // from the inner call to the outer call
};

}  // namespace tributary
