#pragma once

#include <cstdint>
#include <string_view>

#include "dwarf/abbreviations.h"
#include "dwarf/dwarf_format.h"
#include "elf/byte_reader.h"

namespace tributary {

// A unit of .debug_info: where its entries are, how they are encoded, and the attributes of its first entry.
struct DwarfUnit {
  uint64_t offset = 0;       // offset of its header in .debug_info
  uint64_t first_entry = 0;  // offset of its first entry in .debug_info
  uint64_t end = 0;          // offset after its last entry
  uint16_t version = 0;
  uint8_t offset_bytes = 4;  // 8 in DWARF64
  uint8_t address_bytes = 8;
  DwUnitType type = DwUnitType::kCompile;
  uint64_t dwo_id = 0;
  uint64_t abbreviations_offset = 0;  // in .debug_abbrev
  const AbbreviationTable* abbreviations = nullptr;

  uint16_t tag = 0;
  uint64_t low_pc = 0;  // base of its ranges
  uint64_t str_offsets_base = 0, addr_base = 0, rnglists_base = 0;
  uint64_t ranges_base = 0;  // GNU split DWARF: base of DW_AT_ranges in the .dwo
  bool has_lines = false;
  uint64_t lines = 0;  // offset of its line program in .debug_line
  std::string_view comp_dir, name, dwo_name;
};

// The encoded value of an attribute. Depending on `form`, `number` is the value itself, an index, or an offset.
struct DwarfValue {
  DwForm form{};
  uint64_t number = 0;
  std::string_view text;  // for kString

  bool present() const { return form != DwForm{}; }
};

// Returns true if values of this form are addresses or indices of addresses.
bool IsAddress(DwForm form);

// Read or skip a value. Return false if the form is unknown: the caller then cannot read the rest of the unit. They
// return true even if the bytes end too early, so the caller must also check reader.bad().
bool ReadDwarfValue(ByteReader& reader, const DwarfUnit& unit, const DwAttributeSpec& spec, DwarfValue* out);
bool SkipDwarfValue(ByteReader& reader, const DwarfUnit& unit, DwForm form);

}  // namespace tributary
