#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// What a file has of DWARF; empty where it has none. Of a .dwo, and of one unit of a .dwp, the sections whose names end
// in .dwo.
struct DwarfSections {
  std::string_view info, abbrev, str, line_str, str_offsets, addr, ranges, rnglists, line;
  std::string_view cu_index;  // of a .dwp: which parts of each section are of which unit
};

// The sections of one file in memory, inflated where they are compressed (zlib, zstd); a relocatable file's with the
// addresses of elf/module_layout.h.
class DwarfSectionStore {
 public:
  // ResourceExhausted: more than `bytes_max` in all. NotFound: no DWARF in the file. InvalidArgument: corrupt.
  static absl::StatusOr<DwarfSectionStore> Read(ElfFile& file, uint64_t bytes_max);

  const DwarfSections& sections() const { return sections_; }

 private:
  DwarfSections sections_;
  std::vector<std::unique_ptr<std::string>> bytes_;  // never moved: sections_ points into them
};

}  // namespace tributary
