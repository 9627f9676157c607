#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// The DWARF sections of a file. A missing section is empty. For a .dwo file or a unit of a package (.dwp), they are the
// sections with names that end in ".dwo".
struct DwarfSections {
  std::string_view info, abbrev, str, line_str, str_offsets, addr, ranges, rnglists, line;
  std::string_view cu_index;  // of a .dwp: maps units to their parts of each section
};

// Owns the DWARF sections of one file in memory. Decompresses compressed sections (zlib, zstd). In the sections of a
// relocatable file (a kernel module), addresses are those of elf/module_layout.h.
class DwarfSectionStore {
 public:
  // Returns ResourceExhausted if the sections have more than `bytes_max` bytes in total, NotFound if the file has no
  // DWARF, and InvalidArgument if the file is corrupt.
  static absl::StatusOr<DwarfSectionStore> Read(ElfFile& file, uint64_t bytes_max);

  const DwarfSections& sections() const { return sections_; }

 private:
  DwarfSections sections_;
  std::vector<std::unique_ptr<std::string>> bytes_;  // never moved: sections_ points into them
};

}  // namespace tributary
