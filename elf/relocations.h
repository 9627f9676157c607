#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// Does to the debug sections of a relocatable file (ET_REL: a kernel module) what a linker would have done: writes the
// addresses of code, as module_layout.h places it, and offsets into other debug sections. Of x86-64 and arm64 the kinds
// that compilers use in debug information. Hostile input: no worse than an error or a wrong address. Memory: 8 bytes a
// symbol; relocations are read in pieces. Borrows the file.
class Relocations {
 public:
  static constexpr uint64_t kSymbolsMax = 4'000'000;

  // Of a file that is not relocatable, or has no relocations: does nothing. InvalidArgument: corrupt.
  // ResourceExhausted: too many symbols.
  static absl::StatusOr<Relocations> Open(ElfFile& file);

  // `bytes`: the section's, inflated. InvalidArgument: a relocation of another kind, or outside of the section.
  absl::Status Apply(size_t section, std::string* bytes) const;

 private:
  explicit Relocations(ElfFile& file) : file_(&file) {}
  absl::Status ReadSymbols(const std::vector<ElfSection>& sections, const ElfSection& table);
  absl::Status ApplyPiece(std::string_view piece, std::string* bytes) const;

  ElfFile* file_;
  const std::vector<ElfSection>* sections_ = nullptr;  // nullptr: nothing to do
  std::vector<uint64_t> symbols_;                      // their addresses
  uint32_t symbol_table_ = 0;                          // its section
};

}  // namespace tributary
