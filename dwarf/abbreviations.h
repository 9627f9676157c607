#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "dwarf/dwarf_format.h"

namespace tributary {

struct DwAttributeSpec {
  DwAttribute attribute;
  DwForm form;
  int64_t implicit_value = 0;  // of kImplicitConst
};

// What entries of one kind have: section 7.5.3.
struct DwAbbreviation {
  uint16_t tag = 0;
  bool has_children = false;
  uint32_t first_spec = 0, spec_count = 0;
};

// One table of .debug_abbrev. A unit's entries name its rows by code; compilers count them from 1, so that a row is an
// index. Hostile input: at most kRowsMax rows and kSpecsMax attributes.
class AbbreviationTable {
 public:
  static constexpr size_t kRowsMax = 1u << 20, kSpecsMax = 1u << 22;

  // InvalidArgument: it ends early, or has codes that are used twice.
  static absl::StatusOr<AbbreviationTable> Read(std::string_view section, uint64_t offset);

  const DwAbbreviation* Find(uint64_t code) const {
    if (code - 1 < rows_.size()) return &rows_[code - 1];  // 0 is none, and wraps
    return FindSparse(code);
  }
  size_t spec_count() const { return specs_.size(); }
  const DwAttributeSpec* specs(const DwAbbreviation& row) const { return specs_.data() + row.first_spec; }

 private:
  struct Sparse {
    uint64_t code;
    DwAbbreviation row;
  };
  const DwAbbreviation* FindSparse(uint64_t code) const;

  std::vector<DwAbbreviation> rows_;  // of the codes 1, 2, …
  std::vector<Sparse> sparse_;        // of all others, by code
  std::vector<DwAttributeSpec> specs_;
};

}  // namespace tributary
