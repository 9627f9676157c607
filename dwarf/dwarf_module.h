#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "dwarf/dwarf_sections.h"
#include "dwarf/dwarf_unit.h"
#include "elf/address_range.h"

namespace tributary {

// The DWARF of one file, or of one unit of a package (.dwp). Finds the units, and decodes the values of attributes.
// Supports DWARF 2 to 5, 32-bit and 64-bit DWARF, and little-endian files. The input may be hostile, so every offset is
// checked. Units that cannot be read are left out; after a malformed header, no more units are found. If a range list
// cannot be read to its end, the ranges before that place are used. malformed() counts both. References between entries
// are not followed further than one step, so cycles do no harm here. The bytes of the sections must outlive the module.
// Not thread-safe.
class DwarfModule {
 public:
  static constexpr size_t kUnitsMax = 1u << 20;
  static constexpr size_t kAbbreviationsMax = 1u << 24;  // attributes of all tables
  static constexpr size_t kRangesMax = 1u << 26;         // in total: many entries may share a list

  // `shared`: the DWARF that dwz has moved to a file that several executables share, or nullptr. `shared` must outlive
  // the module. `skeleton`: if `sections` are those of a .dwo file, the unit in the executable that refers to this
  // file; otherwise nullptr.
  static absl::StatusOr<std::unique_ptr<DwarfModule>> Open(const DwarfSections& sections, const DwarfModule* shared,
                                                           const DwarfUnit* skeleton);

  const std::vector<DwarfUnit>& units() const { return units_; }
  const DwarfSections& sections() const { return sections_; }
  const DwarfModule* shared() const { return shared_; }
  uint64_t malformed() const { return malformed_; }  // units and range lists

  // Returns the unit with entries that contain this offset of .debug_info, or nullptr.
  const DwarfUnit* UnitAt(uint64_t offset) const;
  // Returns a reader that starts at `offset` of .debug_info and ends with the unit.
  ByteReader EntriesFrom(const DwarfUnit& unit, uint64_t offset) const;

  std::optional<uint64_t> Address(const DwarfUnit& unit, const DwarfValue& value) const;
  std::string_view String(const DwarfUnit& unit, const DwarfValue& value) const;  // "" if there is none
  // Replaces `*out` with the address ranges of an entry, from its attributes DW_AT_low_pc and DW_AT_high_pc, or
  // DW_AT_ranges. Leaves out empty ranges.
  void Ranges(const DwarfUnit& unit, const DwarfValue& low, const DwarfValue& high, const DwarfValue& ranges,
              std::vector<AddressRange>* out);

  // The location of an entry that another entry refers to.
  struct Entry {
    const DwarfModule* module = nullptr;  // null: no entry
    const DwarfUnit* unit = nullptr;
    uint64_t offset = 0;
  };
  Entry Follow(const DwarfUnit& unit, const DwarfValue& value) const;

 private:
  DwarfModule(const DwarfSections& sections, const DwarfModule* shared) : sections_(sections), shared_(shared) {}

  absl::Status ReadUnits(const DwarfUnit* skeleton);
  bool ReadHeader(uint64_t offset, DwarfUnit* unit) const;
  bool ReadFirstEntry(const DwarfUnit* skeleton, DwarfUnit* unit);
  const AbbreviationTable* Abbreviations(uint64_t offset);
  bool ReadOldRanges(const DwarfUnit& unit, uint64_t offset, std::vector<AddressRange>* out);
  bool ReadRangeList(const DwarfUnit& unit, uint64_t offset, std::vector<AddressRange>* out);
  std::optional<uint64_t> IndexedAddress(const DwarfUnit& unit, uint64_t index) const;

  const DwarfSections sections_;
  const DwarfModule* const shared_;
  std::vector<DwarfUnit> units_;  // by offset
  absl::flat_hash_map<uint64_t, std::unique_ptr<AbbreviationTable>> abbreviations_;
  size_t abbreviations_read_ = 0, ranges_read_ = 0;
  uint64_t malformed_ = 0;
};

}  // namespace tributary
