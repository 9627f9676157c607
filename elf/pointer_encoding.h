#pragma once

#include <cstdint>
#include <optional>

#include "elf/byte_reader.h"

namespace tributary {

// Encodings of pointers in exception frames (LSB, "DWARF Exception Header Encoding").
enum : uint8_t {
  kPointerAbsolute = 0x00,
  kPointerUleb = 0x01,
  kPointerU2 = 0x02,
  kPointerU4 = 0x03,
  kPointerU8 = 0x04,
  kPointerSigned = 0x08,
  kPointerSleb = 0x09,
  kPointerS2 = 0x0a,
  kPointerS4 = 0x0b,
  kPointerS8 = 0x0c,
  kPointerFormatMask = 0x0f,
  kPointerPcRelative = 0x10,
  kPointerDataRelative = 0x30,
  kPointerAligned = 0x50,
  kPointerBaseMask = 0x70,
  kPointerIndirect = 0x80,
  kPointerOmit = 0xff,
};

// Reads the number of a pointer, without adding its base. Returns nullopt if the encoding is unknown.
inline std::optional<uint64_t> ReadPointerNumber(ByteReader& reader, uint8_t encoding) {
  switch (encoding & kPointerFormatMask) {
    case kPointerAbsolute:
    case kPointerU8:
    case kPointerSigned:
    case kPointerS8:
      return reader.Fixed<uint64_t>();
    case kPointerUleb:
      return reader.Uleb();
    case kPointerSleb:
      return static_cast<uint64_t>(reader.Sleb());
    case kPointerU2:
      return reader.Fixed<uint16_t>();
    case kPointerS2:
      return static_cast<uint64_t>(int64_t{reader.Fixed<int16_t>()});
    case kPointerU4:
      return reader.Fixed<uint32_t>();
    case kPointerS4:
      return static_cast<uint64_t>(int64_t{reader.Fixed<int32_t>()});
    default:
      return std::nullopt;
  }
}

// Reads a pointer. `address`: the ELF address of its first byte. Returns nullopt if the pointer is indirect, or
// relative to a base other than its own address, or if its encoding is unknown.
inline std::optional<uint64_t> ReadPointer(ByteReader& reader, uint8_t encoding, uint64_t address) {
  if ((encoding & kPointerIndirect) != 0) return std::nullopt;
  uint8_t base = encoding & kPointerBaseMask;
  if (base != 0 && base != kPointerPcRelative) return std::nullopt;
  std::optional<uint64_t> number = ReadPointerNumber(reader, encoding);
  if (number && base == kPointerPcRelative) *number += address;
  return number;
}

}  // namespace tributary
