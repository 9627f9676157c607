#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace tributary {

// The structures of the ELF specification (System V gABI, chapters 4 and 5) that this project reads, with the layout of
// an ELF64 little-endian file. They have names of this project, so that code need not include <elf.h>.

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the structures of a file are little-endian");

// The first bytes of every ELF file.
constexpr std::string_view kElfMagic(
    "\x7f"
    "ELF");

struct ElfHeader {
  uint8_t ident[16];
  uint16_t type;
  uint16_t machine;
  uint32_t version;
  uint64_t entry;
  uint64_t program_header_offset;
  uint64_t section_header_offset;
  uint32_t flags;
  uint16_t header_size;
  uint16_t program_header_size;
  uint16_t program_header_count;
  uint16_t section_header_size;
  uint16_t section_header_count;
  uint16_t section_names_index;
};
static_assert(sizeof(ElfHeader) == 64);

struct ElfProgramHeader {
  uint32_t type;
  uint32_t flags;
  uint64_t offset;
  uint64_t address;
  uint64_t physical_address;
  uint64_t file_size;
  uint64_t memory_size;
  uint64_t alignment;
};
static_assert(sizeof(ElfProgramHeader) == 56);

struct ElfSectionHeader {
  uint32_t name;
  uint32_t type;
  uint64_t flags;
  uint64_t address;
  uint64_t offset;
  uint64_t size;
  uint32_t link;
  uint32_t info;
  uint64_t alignment;
  uint64_t entry_size;
};
static_assert(sizeof(ElfSectionHeader) == 64);

struct ElfSymbol {
  uint32_t name;
  uint8_t info;  // binding << 4 | type
  uint8_t other;
  uint16_t section;
  uint64_t value;
  uint64_t size;
};
static_assert(sizeof(ElfSymbol) == 24);

struct ElfRelocation {
  uint64_t offset;
  uint32_t type;    // the lower half of r_info
  uint32_t symbol;  // the upper half
  int64_t addend;
};
static_assert(sizeof(ElfRelocation) == 24);

constexpr uint16_t kElfTypeRelocatable = 1, kElfTypeExecutable = 2, kElfTypeShared = 3;
constexpr uint16_t kElfMachineX86_64 = 62, kElfMachineArm64 = 183;
constexpr uint32_t kElfSegmentLoad = 1, kElfSegmentNote = 4;
constexpr uint32_t kElfSegmentUnwindTable = 0x6474e550;  // PT_GNU_EH_FRAME
constexpr uint32_t kElfSegmentExecutable = 1;            // flags
constexpr uint32_t kElfSectionSymtab = 2, kElfSectionRelocations = 4, kElfSectionNote = 7, kElfSectionNobits = 8,
                   kElfSectionDynsym = 11;
constexpr uint64_t kElfSectionLoaded = 2, kElfSectionExecutable = 4, kElfSectionCompressed = 0x800;  // flags
constexpr uint16_t kElfIndexUndefined = 0, kElfIndexReserved = 0xff00, kElfIndexAbsolute = 0xfff1,
                   kElfIndexExtended = 0xffff;
constexpr uint8_t kElfSymbolNoType = 0, kElfSymbolFunction = 2, kElfSymbolIfunc = 10;
constexpr uint8_t kElfBindLocal = 0, kElfBindWeak = 2;

// The caller must check that `bytes` has at least offset + sizeof(T) bytes.
template <typename T>
T ReadElfStruct(std::string_view bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof(T));
  return value;
}

}  // namespace tributary
