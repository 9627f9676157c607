#pragma once

#include <cstdint>
#include <optional>

#include "dwarf/dwarf_sections.h"

namespace tributary {

// The index of a DWARF package (.dwp), which says which part of each section belongs to which unit. Supports DWARF 5
// (section 7.3.5) and the earlier GNU format (version 2). The input may be hostile. The sections of the package must
// outlive the index.
class SplitIndex {
 public:
  // Returns nullopt if the package has no index, or an invalid one.
  static std::optional<SplitIndex> Read(const DwarfSections& package);

  // Returns the parts of the sections that belong to the unit with this id, as if they were the sections of a separate
  // .dwo. Returns nullopt if there is no such unit, or if one of its parts lies outside of the section.
  std::optional<DwarfSections> Find(uint64_t dwo_id) const;

 private:
  DwarfSections package_;
  uint32_t version_ = 0, columns_ = 0, units_ = 0, slots_ = 0;
  std::string_view ids_, rows_, kinds_, offsets_, sizes_;
};

}  // namespace tributary
