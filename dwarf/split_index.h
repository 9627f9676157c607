#pragma once

#include <cstdint>
#include <optional>

#include "dwarf/dwarf_sections.h"

namespace tributary {

// The index of a DWARF package (.dwp): which part of each of its sections is of which unit. DWARF 5, section 7.3.5, and
// the GNU form before it (version 2). Hostile input. Borrows the package's sections.
class SplitIndex {
 public:
  // nullopt: no index, or one that does not fit.
  static std::optional<SplitIndex> Read(const DwarfSections& package);

  // The sections of that unit's .dwo, as if they were a file of their own.
  std::optional<DwarfSections> Find(uint64_t dwo_id) const;

 private:
  DwarfSections package_;
  uint32_t version_ = 0, columns_ = 0, units_ = 0, slots_ = 0;
  std::string_view ids_, rows_, kinds_, offsets_, sizes_;
};

}  // namespace tributary
