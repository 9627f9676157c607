#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "elf/elf_file.h"
#include "elf/file_window.h"
#include "symbols/go_table_bytes.h"

namespace tributary {

// One function of Go's table. The steps give the file, the line and the inlined call for each part of the code.
struct GoFunction {
  uint64_t begin = 0;  // address
  uint32_t size = 0;
  uint32_t node = 0;
  uint32_t unit = 0;  // base of its file numbers
  uint64_t tree = 0;  // address; 0: no inlined calls
  std::vector<GoStep> files, lines, calls;
};

// Makes nodes for the calls that were inlined into functions. Go's table has a tree of such calls for each function; a
// call is a record of this tree. Each record has the called function's name and an instruction (`parentPc`). The file,
// line and call of that instruction are the place of the call. Records lie next to the table, or in it. Before Go 1.20
// a record has 20 bytes (with parent, file and line), since then 16 (source: `inlinedCall` of Go's runtime/symtab.go
// and symtabinl.go).
class GoInlineCalls {
 public:
  static constexpr size_t kNestingMax = 1024;
  static constexpr int32_t kRecordsMax = 1 << 20;  // per tree

  struct Call {
    uint32_t node = 0, depth = 0;
  };

  GoInlineCalls(ElfFile& file, GoTableBytes& table, SymbolTableBuilder& builder);

  // Sets the function for all following calls. The function must live until the next Enter().
  void Enter(const GoFunction& function);
  // Returns the call for a record number. A record that cannot be read, or that is nested too deeply, counts as the
  // function's own code. A record that is inlined into itself counts as inlined into the function.
  Call Resolve(int32_t record);
  // True if the current function has a malformed record.
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
  std::vector<std::pair<int32_t, Record>> open_;  // from the inner call to the outer one
};

}  // namespace tributary
