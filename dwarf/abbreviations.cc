#include "dwarf/abbreviations.h"

#include <algorithm>

#include "base/status.h"
#include "elf/byte_reader.h"

namespace tributary {

absl::StatusOr<AbbreviationTable> AbbreviationTable::Read(std::string_view section, uint64_t offset) {
  if (offset > section.size())
    return Error(absl::StatusCode::kInvalidArgument,
                 "DWARF: the abbreviations' offset is beyond the end of .debug_abbrev");
  ByteReader reader(section.substr(offset));
  AbbreviationTable table;
  while (const uint64_t code = reader.Uleb()) {
    DwAbbreviation row;
    row.tag = static_cast<uint16_t>(std::min<uint64_t>(reader.Uleb(), UINT16_MAX));
    row.has_children = reader.Byte() != 0;
    row.first_spec = static_cast<uint32_t>(table.specs_.size());
    for (;;) {
      const uint64_t attribute = reader.Uleb(), form = reader.Uleb();
      const int64_t implicit = form == static_cast<uint64_t>(DwForm::kImplicitConst) ? reader.Sleb() : 0;
      if (attribute == 0 && form == 0) break;
      if (attribute > UINT16_MAX || form > UINT16_MAX || table.specs_.size() == kSpecsMax) {
        return Error(
            absl::StatusCode::kInvalidArgument,
            "DWARF: an abbreviation has an invalid attribute, or a unit's abbreviations have too many attributes");
      }
      table.specs_.push_back({static_cast<DwAttribute>(attribute), static_cast<DwForm>(form), implicit});
    }
    row.spec_count = static_cast<uint32_t>(table.specs_.size()) - row.first_spec;
    if (table.rows_.size() + table.sparse_.size() == kRowsMax) {
      return Error(absl::StatusCode::kInvalidArgument, "DWARF: a unit has too many abbreviations");
    }
    if (code == table.rows_.size() + 1 && table.sparse_.empty()) {
      table.rows_.push_back(row);
    } else {
      table.sparse_.push_back({code, row});
    }
  }
  if (reader.bad()) return Error(absl::StatusCode::kInvalidArgument, "DWARF: the abbreviations are cut off");
  auto by_code = [](const Sparse& a, const Sparse& b) { return a.code < b.code; };
  std::sort(table.sparse_.begin(), table.sparse_.end(), by_code);
  for (size_t i = 0; i < table.sparse_.size(); ++i) {
    const uint64_t code = table.sparse_[i].code;
    if (code <= table.rows_.size() || (i > 0 && code == table.sparse_[i - 1].code)) {
      return Error(absl::StatusCode::kInvalidArgument, "DWARF: two abbreviations have the same code");
    }
  }
  return table;
}

const DwAbbreviation* AbbreviationTable::FindSparse(uint64_t code) const {
  auto it = std::lower_bound(sparse_.begin(), sparse_.end(), code,
                             [](const Sparse& row, uint64_t wanted) { return row.code < wanted; });
  return it != sparse_.end() && it->code == code ? &it->row : nullptr;
}

}  // namespace tributary
