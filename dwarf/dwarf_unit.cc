#include "dwarf/dwarf_unit.h"

namespace tributary {
namespace {

uint64_t ReadSized(ByteReader& reader, unsigned bytes) {
  switch (bytes) {
    case 1:
      return reader.Byte();
    case 2:
      return reader.Fixed<uint16_t>();
    case 3: {
      const uint64_t low = reader.Fixed<uint16_t>();
      return low | uint64_t{reader.Byte()} << 16;
    }
    case 4:
      return reader.Fixed<uint32_t>();
    default:
      return reader.Fixed<uint64_t>();
  }
}

// Returns the size of a form if it is fixed. Returns 0 for forms of variable size and for unknown forms.
unsigned FixedBytes(const DwarfUnit& unit, DwForm form) {
  switch (form) {
    case DwForm::kData1:
    case DwForm::kFlag:
    case DwForm::kRef1:
    case DwForm::kStrx1:
    case DwForm::kAddrx1:
      return 1;
    case DwForm::kData2:
    case DwForm::kRef2:
    case DwForm::kStrx2:
    case DwForm::kAddrx2:
      return 2;
    case DwForm::kStrx3:
    case DwForm::kAddrx3:
      return 3;
    case DwForm::kData4:
    case DwForm::kRef4:
    case DwForm::kRefSup4:
    case DwForm::kStrx4:
    case DwForm::kAddrx4:
      return 4;
    case DwForm::kData8:
    case DwForm::kRef8:
    case DwForm::kRefSup8:
    case DwForm::kRefSig8:
      return 8;
    case DwForm::kAddr:
      return unit.address_bytes;
    case DwForm::kRefAddr:
      return unit.version <= 2 ? unit.address_bytes : unit.offset_bytes;
    case DwForm::kStrp:
    case DwForm::kSecOffset:
    case DwForm::kStrpSup:
    case DwForm::kLineStrp:
    case DwForm::kGnuRefAlt:
    case DwForm::kGnuStrpAlt:
      return unit.offset_bytes;
    default:
      return 0;
  }
}

// Reads the actual form of a value of form kIndirect. The form cannot be indirect again. Nor can it be kImplicitConst,
// because only a table can hold that value.
DwForm ReadForm(ByteReader& reader) {
  const uint64_t form = reader.Uleb();
  if (form > UINT16_MAX || form == static_cast<uint64_t>(DwForm::kIndirect) ||
      form == static_cast<uint64_t>(DwForm::kImplicitConst)) {
    return DwForm{};
  }
  return static_cast<DwForm>(form);
}

}  // namespace

bool IsAddress(DwForm form) {
  switch (form) {
    case DwForm::kAddr:
    case DwForm::kAddrx:
    case DwForm::kAddrx1:
    case DwForm::kAddrx2:
    case DwForm::kAddrx3:
    case DwForm::kAddrx4:
    case DwForm::kGnuAddrIndex:
      return true;
    default:
      return false;
  }
}

bool SkipDwarfValue(ByteReader& reader, const DwarfUnit& unit, DwForm form) {
  if (const unsigned bytes = FixedBytes(unit, form); bytes != 0) {
    reader.Bytes(bytes);
    return true;
  }
  switch (form) {
    case DwForm::kFlagPresent:
    case DwForm::kImplicitConst:
      return true;
    case DwForm::kData16:
      reader.Bytes(16);
      return true;
    case DwForm::kString:
      reader.ZeroTerminated();
      return true;
    case DwForm::kBlock1:
      reader.Bytes(reader.Byte());
      return true;
    case DwForm::kBlock2:
      reader.Bytes(reader.Fixed<uint16_t>());
      return true;
    case DwForm::kBlock4:
      reader.Bytes(reader.Fixed<uint32_t>());
      return true;
    case DwForm::kBlock:
    case DwForm::kExprloc:
      reader.Bytes(reader.Uleb());
      return true;
    case DwForm::kSdata:
    case DwForm::kUdata:
    case DwForm::kRefUdata:
    case DwForm::kStrx:
    case DwForm::kAddrx:
    case DwForm::kLoclistx:
    case DwForm::kRnglistx:
    case DwForm::kGnuAddrIndex:
    case DwForm::kGnuStrIndex:
      reader.Uleb();
      return true;
    case DwForm::kIndirect: {
      const DwForm actual = ReadForm(reader);
      return actual != DwForm{} && SkipDwarfValue(reader, unit, actual);
    }
    default:
      return false;
  }
}

bool ReadDwarfValue(ByteReader& reader, const DwarfUnit& unit, const DwAttributeSpec& spec, DwarfValue* out) {
  out->form = spec.form;
  if (spec.form == DwForm::kIndirect) {
    out->form = ReadForm(reader);
    if (out->form == DwForm{}) return false;
  }
  if (const unsigned bytes = FixedBytes(unit, out->form); bytes != 0) {
    out->number = ReadSized(reader, bytes);
    return true;
  }
  switch (out->form) {
    case DwForm::kFlagPresent:
      out->number = 1;
      return true;
    case DwForm::kImplicitConst:
      out->number = static_cast<uint64_t>(spec.implicit_value);
      return true;
    case DwForm::kString:
      out->text = reader.ZeroTerminated();
      return true;
    case DwForm::kSdata:
      out->number = static_cast<uint64_t>(reader.Sleb());
      return true;
    case DwForm::kUdata:
    case DwForm::kRefUdata:
    case DwForm::kStrx:
    case DwForm::kAddrx:
    case DwForm::kLoclistx:
    case DwForm::kRnglistx:
    case DwForm::kGnuAddrIndex:
    case DwForm::kGnuStrIndex:
      out->number = reader.Uleb();
      return true;
    default:
      return SkipDwarfValue(reader, unit, out->form);
  }
}

}  // namespace tributary
