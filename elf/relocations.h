#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// Applies relocations to the debug sections of a relocatable file (ET_REL, such as a kernel module), as a linker would
// do. Writes addresses of code (module_layout.h) and offsets in other debug sections. Supports the kinds of relocations
// that compilers use in debug information of x86-64 and arm64. The input may be hostile: the worst result is an error
// or a wrong address. Needs 8 bytes of memory per symbol. Does not load all relocations at once. Borrows the file.
class Relocations {
 public:
  static constexpr uint64_t kSymbolsMax = 4'000'000;

  // If the file is not relocatable or has no symbol table, Apply will do nothing. InvalidArgument if the file is
  // corrupt. ResourceExhausted if the file has more than kSymbolsMax symbols.
  static absl::StatusOr<Relocations> Open(ElfFile& file);

  // `section`: the section's index. `bytes`: the decompressed bytes of the section, which Apply changes.
  // InvalidArgument if a relocation is of another kind, or is outside of the section.
  absl::Status Apply(size_t section, std::string* bytes) const;

 private:
  explicit Relocations(ElfFile& file) : file_(&file) {}
  absl::Status ReadSymbols(const std::vector<ElfSection>& sections, const ElfSection& table);
  absl::Status ApplyPiece(std::string_view piece, std::string* bytes) const;

  ElfFile* file_;
  const std::vector<ElfSection>* sections_ = nullptr;  // nullptr: nothing to do
  std::vector<uint64_t> symbols_;                      // addresses of the symbols
  uint32_t symbol_table_ = 0;                          // index of the section with the symbol table
};

}  // namespace tributary
