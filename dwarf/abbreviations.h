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

// The layout of debugging information entries: their tag and attributes (DWARF 5, section 7.5.3).
struct DwAbbreviation {
  uint16_t tag = 0;
  bool has_children = false;
  uint32_t first_spec = 0, spec_count = 0;
};

// One table of .debug_abbrev. Each entry of a unit contains the code of its row in this table. Compilers number the
// codes from 1, so the row is usually found by index. The input may be hostile, so a table has at most kRowsMax rows
// and kSpecsMax attributes.
class AbbreviationTable {
 public:
  static constexpr size_t kRowsMax = 1u << 20, kSpecsMax = 1u << 22;

  // Reads the table at `offset` of .debug_abbrev. Returns InvalidArgument if the table ends too early, exceeds a limit,
  // or uses a code twice.
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
