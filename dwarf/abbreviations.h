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
  int64_t implicit_value = 0;  // for kImplicitConst
};

// Layout of the entries of one kind: section 7.5.3.
struct DwAbbreviation {
  uint16_t tag = 0;
  bool has_children = false;
  uint32_t first_spec = 0, spec_count = 0;
};

// One table of .debug_abbrev. A unit's entries refer to the table's rows by code. Compilers count codes from 1, so a
// code gives an index. The input may be hostile: at most kRowsMax rows and kSpecsMax attributes.
class AbbreviationTable {
 public:
  static constexpr size_t kRowsMax = 1u << 20, kSpecsMax = 1u << 22;

  // InvalidArgument if the table ends early, exceeds a limit, or uses a code twice.
  static absl::StatusOr<AbbreviationTable> Read(std::string_view section, uint64_t offset);

  const DwAbbreviation* Find(uint64_t code) const {
    if (code - 1 < rows_.size()) return &rows_[code - 1];  // code 0 means no row: code - 1 wraps
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

  std::vector<DwAbbreviation> rows_;  // for the codes 1, 2, …
  std::vector<Sparse> sparse_;        // for all other codes, sorted by code
  std::vector<DwAttributeSpec> specs_;
};

}  // namespace tributary
