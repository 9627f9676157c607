#include "dwarf/dwarf_module.h"

// What DW_AT_ranges refers to: section 2.17.3, and of version 4 the section of that number.

namespace tributary {
namespace {

void Append(uint64_t begin, uint64_t end, std::vector<AddressRange>* out) {
  if (begin < end) out->push_back({begin, end});
}

uint64_t ReadAddress(ByteReader& reader, const DwarfUnit& unit) {
  return unit.address_bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>();
}

}  // namespace

void DwarfModule::Ranges(const DwarfUnit& unit, const DwarfValue& low, const DwarfValue& high, const DwarfValue& ranges,
                         std::vector<AddressRange>* out) {
  out->clear();
  if (!ranges.present()) {
    const std::optional<uint64_t> begin = Address(unit, low);
    if (!begin || !high.present()) return;
    if (!IsAddress(high.form)) return Append(*begin, *begin + high.number, out);
    if (const std::optional<uint64_t> end = Address(unit, high)) Append(*begin, *end, out);
    return;
  }
  uint64_t offset = ranges.number;
  bool ok = true;
  if (unit.version < 5) {
    ok = ReadOldRanges(unit, offset + unit.ranges_base, out);
  } else {
    if (ranges.form == DwForm::kRnglistx) {
      ByteReader reader(sections_.rnglists.substr(std::min<uint64_t>(unit.rnglists_base, sections_.rnglists.size())));
      ok = offset < reader.left() / unit.offset_bytes;
      if (ok) reader.Bytes(offset * unit.offset_bytes);
      offset = unit.rnglists_base + (unit.offset_bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>());
    }
    ok = ok && ReadRangeList(unit, offset, out);
  }
  if (!ok) ++malformed_;
}

bool DwarfModule::ReadOldRanges(const DwarfUnit& unit, uint64_t offset, std::vector<AddressRange>* out) {
  if (offset > sections_.ranges.size()) return false;
  ByteReader reader(sections_.ranges.substr(offset));
  const uint64_t select_base = unit.address_bytes == 8 ? UINT64_MAX : UINT32_MAX;
  uint64_t base = unit.low_pc;
  while (ranges_read_++ < kRangesMax) {
    const uint64_t begin = ReadAddress(reader, unit), end = ReadAddress(reader, unit);
    if (reader.bad()) return false;
    if (begin == 0 && end == 0) return true;
    if (begin == select_base) {
      base = end;
    } else {
      Append(base + begin, base + end, out);
    }
  }
  return false;
}

bool DwarfModule::ReadRangeList(const DwarfUnit& unit, uint64_t offset, std::vector<AddressRange>* out) {
  if (offset > sections_.rnglists.size()) return false;
  ByteReader reader(sections_.rnglists.substr(offset));
  uint64_t base = unit.low_pc;
  while (ranges_read_++ < kRangesMax) {
    const auto kind = static_cast<DwRangeEntry>(reader.Byte());
    if (reader.bad()) return false;
    auto indexed = [&] { return IndexedAddress(unit, reader.Uleb()).value_or(0); };
    switch (kind) {
      case DwRangeEntry::kEndOfList:
        return true;
      case DwRangeEntry::kBaseAddressx:
        base = indexed();
        break;
      case DwRangeEntry::kBaseAddress:
        base = ReadAddress(reader, unit);
        break;
      case DwRangeEntry::kStartxEndx: {
        const uint64_t begin = indexed();
        Append(begin, indexed(), out);
        break;
      }
      case DwRangeEntry::kStartxLength: {
        const uint64_t begin = indexed();
        Append(begin, begin + reader.Uleb(), out);
        break;
      }
      case DwRangeEntry::kOffsetPair: {
        const uint64_t begin = reader.Uleb();
        Append(base + begin, base + reader.Uleb(), out);
        break;
      }
      case DwRangeEntry::kStartEnd: {
        const uint64_t begin = ReadAddress(reader, unit);
        Append(begin, ReadAddress(reader, unit), out);
        break;
      }
      case DwRangeEntry::kStartLength: {
        const uint64_t begin = ReadAddress(reader, unit);
        Append(begin, begin + reader.Uleb(), out);
        break;
      }
      default:
        return false;
    }
  }
  return false;
}

}  // namespace tributary
