#include "dwarf/dwarf_module.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {
namespace {

constexpr uint32_t kLength64 = 0xffffffff, kLengthReserved = 0xfffffff0;

// Values of a unit's first entry. They are used once all of them were read.
struct UnitValues {
  DwarfValue name, comp_dir, dwo_name, low_pc, lines;
  DwarfValue str_offsets_base, addr_base, rnglists_base, ranges_base, dwo_id;

  DwarfValue* Of(DwAttribute attribute) {
    switch (attribute) {
      case DwAttribute::kName:
        return &name;
      case DwAttribute::kCompDir:
        return &comp_dir;
      case DwAttribute::kDwoName:
      case DwAttribute::kGnuDwoName:
        return &dwo_name;
      case DwAttribute::kLowPc:
        return &low_pc;
      case DwAttribute::kStmtList:
        return &lines;
      case DwAttribute::kStrOffsetsBase:
        return &str_offsets_base;
      case DwAttribute::kAddrBase:
      case DwAttribute::kGnuAddrBase:
        return &addr_base;
      case DwAttribute::kRnglistsBase:
        return &rnglists_base;
      case DwAttribute::kGnuRangesBase:
        return &ranges_base;
      case DwAttribute::kGnuDwoId:
        return &dwo_id;
      default:
        return nullptr;
    }
  }
};

uint64_t Sized(std::string_view section, uint64_t offset, unsigned bytes, bool* ok) {
  *ok = offset <= section.size() && bytes <= section.size() - offset;
  if (!*ok) return 0;
  ByteReader reader(section.substr(offset));
  return bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>();
}

std::string_view TextAt(std::string_view section, uint64_t offset) {
  if (offset >= section.size()) return {};
  return ByteReader(section.substr(offset)).ZeroTerminated();
}

void Append(uint64_t begin, uint64_t end, std::vector<AddressRange>* out) {
  if (begin < end) out->push_back({begin, end});
}

uint64_t ReadAddress(ByteReader& reader, const DwarfUnit& unit) {
  return unit.address_bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>();
}

}  // namespace

absl::StatusOr<std::unique_ptr<DwarfModule>> DwarfModule::Open(const DwarfSections& sections, const DwarfModule* shared,
                                                               const DwarfUnit* skeleton) {
  std::unique_ptr<DwarfModule> module(new DwarfModule(sections, shared));
  RETURN_IF_ERROR(module->ReadUnits(skeleton));
  return module;
}

absl::Status DwarfModule::ReadUnits(const DwarfUnit* skeleton) {
  for (uint64_t offset = 0; offset < sections_.info.size();) {
    DwarfUnit unit;
    if (units_.size() == kUnitsMax)
      return Error(absl::StatusCode::kResourceExhausted, "DWARF: the file has too many units");
    if (!ReadHeader(offset, &unit)) {
      // The begin of the next unit is unknown.
      ++malformed_;
      break;
    }
    offset = unit.end;
    if (unit.version >= 2 && unit.version <= 5 && ReadFirstEntry(skeleton, &unit)) {
      units_.push_back(unit);
    } else {
      ++malformed_;
    }
  }
  if (units_.empty()) return Error(absl::StatusCode::kInvalidArgument, "DWARF: none of the units can be read");
  return absl::OkStatus();
}

// Section 7.5.1.
bool DwarfModule::ReadHeader(uint64_t offset, DwarfUnit* unit) const {
  ByteReader reader(sections_.info.substr(offset));
  const size_t size = reader.left();
  uint64_t length = reader.Fixed<uint32_t>();
  if (length == kLength64) {
    unit->offset_bytes = 8;
    length = reader.Fixed<uint64_t>();
  } else if (length >= kLengthReserved) {
    return false;
  }
  if (reader.bad() || length > reader.left()) return false;
  unit->offset = offset;
  unit->end = offset + (size - reader.left()) + length;
  reader = ByteReader(reader.Bytes(length));
  auto read_offset = [&] { return unit->offset_bytes == 8 ? reader.Fixed<uint64_t>() : reader.Fixed<uint32_t>(); };
  unit->version = reader.Fixed<uint16_t>();
  if (unit->version >= 5) {
    unit->type = static_cast<DwUnitType>(reader.Byte());
    unit->address_bytes = reader.Byte();
    unit->abbreviations_offset = read_offset();
    const bool split = unit->type == DwUnitType::kSkeleton || unit->type == DwUnitType::kSplitCompile;
    const bool type = unit->type == DwUnitType::kType || unit->type == DwUnitType::kSplitType;
    if (split || type) unit->dwo_id = reader.Fixed<uint64_t>();  // for types a signature
    if (type) read_offset();
  } else {
    unit->abbreviations_offset = read_offset();
    unit->address_bytes = reader.Byte();
  }
  unit->first_entry = unit->end - reader.left();
  return !reader.bad();
}

bool DwarfModule::ReadFirstEntry(const DwarfUnit* skeleton, DwarfUnit* unit) {
  if (unit->address_bytes != 8 && unit->address_bytes != 4) return false;
  unit->abbreviations = Abbreviations(unit->abbreviations_offset);
  if (unit->abbreviations == nullptr) return false;
  ByteReader reader = EntriesFrom(*unit, unit->first_entry);
  const DwAbbreviation* row = unit->abbreviations->Find(reader.Uleb());
  if (row == nullptr) return false;
  unit->tag = row->tag;
  UnitValues values;
  const DwAttributeSpec* specs = unit->abbreviations->specs(*row);
  for (uint32_t i = 0; i < row->spec_count; ++i) {
    DwarfValue ignored;
    DwarfValue* value = values.Of(specs[i].attribute);
    if (!ReadDwarfValue(reader, *unit, specs[i], value != nullptr ? value : &ignored)) return false;
  }
  if (reader.bad()) return false;

  // A .dwo has no base attributes: its offsets follow its only header, and its addresses are the executable's.
  const bool is_new = unit->version >= 5;
  const uint64_t header_bytes = unit->offset_bytes == 8 ? 16 : 8;
  unit->str_offsets_base = values.str_offsets_base.present() ? values.str_offsets_base.number
                           : is_new                          ? header_bytes
                                                             : 0;
  unit->rnglists_base = values.rnglists_base.present() ? values.rnglists_base.number : header_bytes + 4;
  unit->addr_base = values.addr_base.present() ? values.addr_base.number : is_new ? header_bytes : 0;
  unit->ranges_base = values.ranges_base.number;
  unit->has_lines = values.lines.present();
  unit->lines = values.lines.number;
  if (values.dwo_id.present()) unit->dwo_id = values.dwo_id.number;
  if (skeleton != nullptr) {
    unit->addr_base = skeleton->addr_base;
    unit->ranges_base = skeleton->ranges_base;
    unit->low_pc = skeleton->low_pc;
    unit->comp_dir = skeleton->comp_dir;
  }
  if (std::optional<uint64_t> low = Address(*unit, values.low_pc)) unit->low_pc = *low;
  if (values.comp_dir.present()) unit->comp_dir = String(*unit, values.comp_dir);
  unit->name = String(*unit, values.name);
  unit->dwo_name = String(*unit, values.dwo_name);
  return true;
}

const AbbreviationTable* DwarfModule::Abbreviations(uint64_t offset) {
  auto [it, added] = abbreviations_.try_emplace(offset);
  if (!added) return it->second.get();
  if (abbreviations_read_ > kAbbreviationsMax) return nullptr;
  absl::StatusOr<AbbreviationTable> table = AbbreviationTable::Read(sections_.abbrev, offset);
  if (!table.ok()) return nullptr;
  abbreviations_read_ += table->spec_count();
  it->second = std::make_unique<AbbreviationTable>(*std::move(table));
  return it->second.get();
}

const DwarfUnit* DwarfModule::UnitAt(uint64_t offset) const {
  auto after = std::upper_bound(units_.begin(), units_.end(), offset,
                                [](uint64_t wanted, const DwarfUnit& unit) { return wanted < unit.offset; });
  if (after == units_.begin()) return nullptr;
  const DwarfUnit& unit = *std::prev(after);
  return offset >= unit.first_entry && offset < unit.end ? &unit : nullptr;
}

ByteReader DwarfModule::EntriesFrom(const DwarfUnit& unit, uint64_t offset) const {
  return ByteReader(sections_.info.substr(offset, unit.end - offset));
}

std::optional<uint64_t> DwarfModule::IndexedAddress(const DwarfUnit& unit, uint64_t index) const {
  if (index > sections_.addr.size() / unit.address_bytes) return std::nullopt;
  bool ok = false;
  const uint64_t address = Sized(sections_.addr, unit.addr_base + index * unit.address_bytes, unit.address_bytes, &ok);
  return ok ? std::optional(address) : std::nullopt;
}

std::optional<uint64_t> DwarfModule::Address(const DwarfUnit& unit, const DwarfValue& value) const {
  if (value.form == DwForm::kAddr) return value.number;
  return IsAddress(value.form) ? IndexedAddress(unit, value.number) : std::nullopt;
}

std::string_view DwarfModule::String(const DwarfUnit& unit, const DwarfValue& value) const {
  switch (value.form) {
    case DwForm::kString:
      return value.text;
    case DwForm::kStrp:
      return TextAt(sections_.str, value.number);
    case DwForm::kLineStrp:
      return TextAt(sections_.line_str, value.number);
    case DwForm::kGnuStrpAlt:
    case DwForm::kStrpSup:
      return shared_ != nullptr ? TextAt(shared_->sections_.str, value.number) : std::string_view();
    case DwForm::kStrx:
    case DwForm::kStrx1:
    case DwForm::kStrx2:
    case DwForm::kStrx3:
    case DwForm::kStrx4:
    case DwForm::kGnuStrIndex: {
      if (value.number > sections_.str_offsets.size() / unit.offset_bytes) return {};
      bool ok = false;
      const uint64_t offset = Sized(sections_.str_offsets, unit.str_offsets_base + value.number * unit.offset_bytes,
                                    unit.offset_bytes, &ok);
      return ok ? TextAt(sections_.str, offset) : std::string_view();
    }
    default:
      return {};
  }
}

DwarfModule::Entry DwarfModule::Follow(const DwarfUnit& unit, const DwarfValue& value) const {
  auto entry_in = [](const DwarfModule* module, uint64_t offset) -> Entry {
    const DwarfUnit* found = module != nullptr ? module->UnitAt(offset) : nullptr;
    return found != nullptr ? Entry{module, found, offset} : Entry();
  };
  switch (value.form) {
    case DwForm::kRef1:
    case DwForm::kRef2:
    case DwForm::kRef4:
    case DwForm::kRef8:
    case DwForm::kRefUdata: {
      if (value.number >= unit.end - unit.offset || unit.offset + value.number < unit.first_entry) return {};
      return {this, &unit, unit.offset + value.number};
    }
    case DwForm::kRefAddr:
      return entry_in(this, value.number);
    case DwForm::kGnuRefAlt:
    case DwForm::kRefSup4:
    case DwForm::kRefSup8:
      return entry_in(shared_, value.number);
    default:
      return {};
  }
}

// Meaning of DW_AT_ranges: section 2.17.3 of DWARF 5, and the section of that number in DWARF 4.
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
