#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elf/go_table.h"

namespace tributary {

// Where an address's bytes lie in the file; nothing: not in it.
std::optional<uint64_t> AddressToFileOffset(std::span<const ElfSegment> segments, uint64_t address);

// Pointers that a loader is to write: an executable that may lie anywhere, where C's linker made it, has zeros in their
// places and what they are in a table of relocations.
class LoadedWords {
 public:
  static constexpr size_t kWordsMax = 4u << 20;

  // From one entry of that table on, as long as they ascend and are of addresses below `end`.
  static LoadedWords Read(ElfFile& file, uint64_t entry_offset, uint64_t end);
  // The word at an address, which is `in_file` in the file.
  uint64_t At(uint64_t address, uint64_t in_file) const;
  bool empty() const { return words_.empty(); }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> words_;  // by address
};

// What a Go program's table does not say of itself. Addresses.
struct GoModule {
  uint64_t text = 0;  // what the table's addresses are relative to; 0: nothing
  // What the places of functions' trees of inlined calls are relative to; 0: nothing, or not known.
  uint64_t trees = 0;
  bool trees_known = false;
  LoadedWords words;   // of the table itself
  uint64_t table = 0;  // where it lies in memory
};

// Found by runtime.moduledata: what points to the table, and at its parts, and to code (source: runtime/symtab.go of Go
// 1.18 to 1.26); else by symbols (go:func.*, runtime.text), and text by the code of runtime.goexit. Nothing: it is not
// known where Go's text is. Tables before 1.18 have addresses that are not relative.
// Bounds: 256 MiB of segments are searched, 64 finds and 4 M symbols looked at, 64 MiB of words kept.
std::optional<GoModule> FindGoModule(ElfFile& file, const GoTableHeader& header);

}  // namespace tributary
