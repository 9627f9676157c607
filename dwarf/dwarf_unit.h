#pragma once

#include <cstdint>
#include <string_view>

#include "dwarf/abbreviations.h"
#include "dwarf/dwarf_format.h"
#include "elf/byte_reader.h"

namespace tributary {

// Where a unit's entries are, how they are encoded, and what the attributes of its first entry say of it.
struct DwarfUnit {
  uint64_t offset = 0;       // of its header in .debug_info
  uint64_t first_entry = 0;  // likewise, as the next
  uint64_t end = 0;
  uint16_t version = 0;
  uint8_t offset_bytes = 4;  // 8 in DWARF64
  uint8_t address_bytes = 8;
  DwUnitType type = DwUnitType::kCompile;
  uint64_t dwo_id = 0;
  uint64_t abbreviations_offset = 0;  // in .debug_abbrev
  const AbbreviationTable* abbreviations = nullptr;

  uint16_t tag = 0;
  uint64_t low_pc = 0;  // what its ranges count from
  uint64_t str_offsets_base = 0, addr_base = 0, rnglists_base = 0;
  uint64_t ranges_base = 0;  // GNU split DWARF: what DW_AT_ranges of the .dwo counts from
  bool has_lines = false;
  uint64_t lines = 0;  // of its line program in .debug_line
  std::string_view comp_dir, name, dwo_name;
};

// An attribute as it is encoded. What `number` is depends on the form: a value, an index, an offset.
struct DwarfValue {
  DwForm form{};
  uint64_t number = 0;
  std::string_view text;  // of kString

  bool present() const { return form != DwForm{}; }
};

// Whether a value is an address, or the index of one.
bool IsAddress(DwForm form);

// Reads a value, or moves past it. False: a form that is not known, after which nothing in the unit can be read.
// The end of the bytes is for the reader to tell.
bool ReadDwarfValue(ByteReader& reader, const DwarfUnit& unit, const DwAttributeSpec& spec, DwarfValue* out);
bool SkipDwarfValue(ByteReader& reader, const DwarfUnit& unit, DwForm form);

}  // namespace tributary
