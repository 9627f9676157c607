#include "dwarf/split_index.h"

#include "elf/byte_reader.h"

namespace tributary {
namespace {

constexpr uint32_t kColumnsMax = 16;

template <typename T>
T At(std::string_view table, uint64_t index) {
  return ByteReader(table.substr(index * sizeof(T))).Fixed<T>();
}

// Returns the section of an index column, or nullptr if that section is not read here.
std::string_view DwarfSections::* SectionOf(uint32_t version, uint32_t kind) {
  switch (kind) {
    case 1:
      return &DwarfSections::info;
    case 3:
      return &DwarfSections::abbrev;
    case 4:
      return &DwarfSections::line;
    case 6:
      return &DwarfSections::str_offsets;
    case 8:
      return version >= 5 ? &DwarfSections::rnglists : nullptr;
    default:
      return nullptr;
  }
}

}  // namespace

std::optional<SplitIndex> SplitIndex::Read(const DwarfSections& package) {
  if (package.cu_index.empty()) return std::nullopt;
  SplitIndex index;
  index.package_ = package;
  ByteReader reader(package.cu_index);
  index.version_ = reader.Fixed<uint32_t>() & 0xffff;  // in version 5 the field has 16 bits, then 16 bits of padding
  index.columns_ = reader.Fixed<uint32_t>();
  index.units_ = reader.Fixed<uint32_t>();
  index.slots_ = reader.Fixed<uint32_t>();
  const bool power_of_two = index.slots_ != 0 && (index.slots_ & (index.slots_ - 1)) == 0;
  if ((index.version_ != 2 && index.version_ != 5) || index.columns_ > kColumnsMax || !power_of_two)
    return std::nullopt;
  index.ids_ = reader.Bytes(uint64_t{index.slots_} * 8);
  index.rows_ = reader.Bytes(uint64_t{index.slots_} * 4);
  index.kinds_ = reader.Bytes(uint64_t{index.columns_} * 4);
  index.offsets_ = reader.Bytes(uint64_t{index.units_} * index.columns_ * 4);
  index.sizes_ = reader.Bytes(uint64_t{index.units_} * index.columns_ * 4);
  if (reader.bad()) return std::nullopt;
  return index;
}

std::optional<DwarfSections> SplitIndex::Find(uint64_t dwo_id) const {
  const uint32_t mask = slots_ - 1;
  auto slot = static_cast<uint32_t>(dwo_id) & mask;
  const uint32_t step = (static_cast<uint32_t>(dwo_id >> 32) & mask) | 1;
  uint32_t row = 0;
  for (uint32_t tried = 0;; ++tried) {
    row = At<uint32_t>(rows_, slot);
    if (row == 0 || tried == slots_) return std::nullopt;
    if (At<uint64_t>(ids_, slot) == dwo_id) break;
    slot = (slot + step) & mask;
  }
  if (row > units_) return std::nullopt;
  // Strings are shared. Of the other sections a unit has parts, or nothing.
  DwarfSections sections;
  sections.str = package_.str;
  sections.line_str = package_.line_str;
  for (uint32_t column = 0; column < columns_; ++column) {
    std::string_view DwarfSections::* member = SectionOf(version_, At<uint32_t>(kinds_, column));
    if (member == nullptr) continue;
    const uint64_t cell = uint64_t{row - 1} * columns_ + column;
    const uint32_t offset = At<uint32_t>(offsets_, cell), size = At<uint32_t>(sizes_, cell);
    const std::string_view whole = package_.*member;
    if (offset > whole.size() || size > whole.size() - offset) return std::nullopt;
    sections.*member = whole.substr(offset, size);
  }
  return sections;
}

}  // namespace tributary
