#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// Applies relocations to the debug sections of a relocatable file (ET_REL: a kernel module), as a linker would do.
// Writes addresses of code (module_layout.h) and offsets into other debug sections. Supports the kinds of x86-64 and
// arm64 that compilers use in debug information. The input may be hostile: the worst result is an error or a wrong
// address. Memory: 8 bytes per symbol; relocations are read in pieces. Borrows the file.
class Relocations {
 public:
  static constexpr uint64_t kSymbolsMax = 4'000'000;

  // Does nothing for a file that is not relocatable, or that has no symbol table. InvalidArgument if the file is
  // corrupt. ResourceExhausted if it has too many symbols.
  static absl::StatusOr<Relocations> Open(ElfFile& file);

  // `bytes` holds the decompressed bytes of the section. InvalidArgument if a relocation is of another kind, or lies
  // outside of the section.
  absl::Status Apply(size_t section, std::string* bytes) const;

 private:
  explicit Relocations(ElfFile& file) : file_(&file) {}
  absl::Status ReadSymbols(const std::vector<ElfSection>& sections, const ElfSection& table);
  absl::Status ApplyPiece(std::string_view piece, std::string* bytes) const;

  ElfFile* file_;
  const std::vector<ElfSection>* sections_ = nullptr;  // nullptr: nothing to do
  std::vector<uint64_t> symbols_;                      // addresses of the symbols
  uint32_t symbol_table_ = 0;                          // section of the symbol table
};

}  // namespace tributary
