#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "elf/go_table.h"

namespace tributary {

// Returns the file offset of the byte at an address, or nullopt if this byte is not in the file.
std::optional<uint64_t> AddressToFileOffset(std::span<const ElfSegment> segments, uint64_t address);

// Pointers that the dynamic loader writes when a program starts. In the file of a position-independent executable from
// a C linker, these pointers are zero. Their values are in a table of relocations.
class LoadedWords {
 public:
  static constexpr size_t kWordsMax = 4u << 20;

  // Reads the entries of the table of relocations, beginning at `entry_offset`. Stops at the first entry that is not
  // relative, that does not ascend, or that is for an address at or above `end`.
  static LoadedWords Read(ElfFile& file, uint64_t entry_offset, uint64_t end);
  // Returns the pointer that is at `address` after the start. `in_file`: the word that the file has there, which is
  // returned if no relocation changes it.
  uint64_t At(uint64_t address, uint64_t in_file) const;
  bool empty() const { return words_.empty(); }

 private:
  std::vector<std::pair<uint64_t, uint64_t>> words_;  // address and value, sorted by address
};

// Data that is needed to read Go's table, and that the table itself does not contain. The numbers are addresses.
struct GoModule {
  uint64_t text = 0;  // base of the table's addresses; 0: none
  // The base address of the trees of inlined calls. 0: there is none, or it is unknown.
  uint64_t trees = 0;
  bool trees_known = false;
  LoadedWords words;   // pointers in the table
  uint64_t table = 0;  // address of the table in memory
};

// Finds this data in the program's struct runtime.moduledata, which points to the table and to the code (source:
// runtime/symtab.go of Go 1.18 to 1.26). If it does not find the struct, uses the symbols go:func.* and runtime.text,
// or searches for the code of runtime.goexit. Tables before Go 1.18 have absolute addresses and do not need this.
// Returns nullopt if the start of Go's code is unknown. Limits: searches 256 MiB of segments, tries 64 matches and 4 M
// symbols, stores 64 MiB of pointers.
std::optional<GoModule> FindGoModule(ElfFile& file, const GoTableHeader& header);

}  // namespace tributary
