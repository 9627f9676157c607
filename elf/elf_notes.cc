#include "elf/elf_notes.h"

#include "elf/elf_format.h"

namespace tributary {
namespace {

uint64_t RoundUp(uint64_t value, uint64_t alignment) { return (value + alignment - 1) & ~(alignment - 1); }

}  // namespace

std::optional<std::string_view> FindNote(std::string_view notes, uint64_t alignment, std::string_view owner,
                                         uint32_t type) {
  struct Header {
    uint32_t name_size, descriptor_size, type;
  };
  if (alignment != 8) alignment = 4;
  while (notes.size() >= sizeof(Header)) {
    auto header = ReadElfStruct<Header>(notes, 0);
    // Sums of 32-bit sizes in 64 bits cannot wrap.
    uint64_t descriptor = RoundUp(sizeof(Header) + uint64_t{header.name_size}, alignment);
    uint64_t end = descriptor + header.descriptor_size;
    if (end > notes.size()) return std::nullopt;
    std::string_view name = notes.substr(sizeof(Header), header.name_size);
    if (name.ends_with('\0')) name.remove_suffix(1);
    if (header.type == type && name == owner) return notes.substr(descriptor, header.descriptor_size);
    uint64_t next = RoundUp(end, alignment);
    if (next >= notes.size()) return std::nullopt;
    notes.remove_prefix(next);
  }
  return std::nullopt;
}

}  // namespace tributary
