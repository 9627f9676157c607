#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elf/go_table.h"

namespace tributary {

// Returns the file offset of an address's bytes, or nullopt if they are not in the file.
std::optional<uint64_t> AddressToFileOffset(std::span<const ElfSegment> segments, uint64_t address);

// Pointers that the loader will write. A position-independent executable from C's linker has zeros in their places.
// Their values are in a table of relocations.
class LoadedWords {
 public:
  static constexpr size_t kWordsMax = 4u << 20;

  // Reads entries of that table from one entry on, as long as they are relative, ascend, and are of addresses below
  // `end`.
  static LoadedWords Read(ElfFile& file, uint64_t entry_offset, uint64_t end);
  // Returns the word at an address. `in_file` is the word in the file.
  uint64_t At(uint64_t address, uint64_t in_file) const;
  bool empty() const { return words_.empty(); }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> words_;  // by address
};

// Data that a Go program's table does not contain itself. The fields are addresses.
struct GoModule {
  uint64_t text = 0;  // base of the table's addresses; 0: none
  // Base of the places of functions' trees of inlined calls. 0: none, or unknown.
  uint64_t trees = 0;
  bool trees_known = false;
  LoadedWords words;   // pointers in the table itself
  uint64_t table = 0;  // address of the table in memory
};

// Finds the module by runtime.moduledata, which points to the table, to its parts, and to code (source:
// runtime/symtab.go of Go 1.18 to 1.26). If that fails, uses symbols (go:func.*, runtime.text), and finds the text by
// the code of runtime.goexit. Returns nullopt if the begin of Go's text is unknown. Tables before 1.18 have absolute
// addresses. Limits: 256 MiB of segments are searched, 64 finds and 4 M symbols are tried, 64 MiB of words are kept.
std::optional<GoModule> FindGoModule(ElfFile& file, const GoTableHeader& header);

}  // namespace tributary
