#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// The DWARF sections of a file. Missing sections are empty. For a .dwo, and for one unit of a .dwp, these are the
// sections with names that end in .dwo.
struct DwarfSections {
  std::string_view info, abbrev, str, line_str, str_offsets, addr, ranges, rnglists, line;
  std::string_view cu_index;  // of a .dwp: maps units to their parts of each section
};

// The sections of one file in memory. Compressed sections (zlib, zstd) are decompressed. The sections of a relocatable
// file contain the addresses of elf/module_layout.h.
class DwarfSectionStore {
 public:
  // ResourceExhausted if there are more than `bytes_max` bytes in total. NotFound if the file has no DWARF.
  // InvalidArgument if it is corrupt.
  static absl::StatusOr<DwarfSectionStore> Read(ElfFile& file, uint64_t bytes_max);

  const DwarfSections& sections() const { return sections_; }

 private:
  DwarfSections sections_;
  std::vector<std::unique_ptr<std::string>> bytes_;  // never moved: sections_ points into them
};

}  // namespace tributary
