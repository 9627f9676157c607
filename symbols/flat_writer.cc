#include "symbols/flat_writer.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace tributary {
namespace {

uint64_t Aligned(uint64_t offset) { return (offset + flat::kAlignment - 1) / flat::kAlignment * flat::kAlignment; }

}  // namespace

std::string WriteFlat(const FlatContents& contents) {
  flat::Header header{};
  std::memcpy(header.magic, flat::kMagic, sizeof(header.magic));
  header.version = flat::kVersion;
  header.source = static_cast<uint8_t>(contents.source);
  header.id_kind = static_cast<uint8_t>(contents.id.kind());
  header.id_bytes = static_cast<uint8_t>(contents.id.bytes().size());
  std::copy(contents.id.bytes().begin(), contents.id.bytes().end(), header.id);

  struct Part {
    uint64_t offset;
    const void* bytes;
    size_t size;
  };
  std::vector<Part> parts;
  flat::MoreSections more{};
  uint64_t end = sizeof(header) + sizeof(more);
  auto place_at = [&](flat::Section& section, const auto& elements) {
    const size_t size = elements.size() * sizeof(elements[0]);
    section = {Aligned(end), elements.size()};
    end = section.offset + size;
    parts.push_back({section.offset, elements.data(), size});
  };
  auto place = [&](flat::SectionIndex index, const auto& elements) { place_at(header.sections[index], elements); };
  place(flat::kSegments, contents.segments);
  place(flat::kRowAddresses, contents.row_addresses);
  place(flat::kRowNodes, contents.row_nodes);
  place(flat::kRowPlaces, contents.row_places);
  place(flat::kNodes, contents.nodes);
  place(flat::kPlaces, contents.places);
  place(flat::kStarts, contents.starts);
  place(flat::kStringOffsets, contents.string_offsets);
  place(flat::kStringBytes, contents.string_bytes);
  if (!contents.code_kinds.empty()) place_at(more.code_kinds, contents.code_kinds);

  std::string out(Aligned(end), '\0');
  for (const Part& part : parts) {
    if (part.size > 0) std::memcpy(&out[part.offset], part.bytes, part.size);
  }
  std::memcpy(&out[sizeof(header)], &more, sizeof(more));
  header.file_bytes = out.size();
  header.checksum = XXH3_64bits(out.data() + sizeof(header), out.size() - sizeof(header));
  std::memcpy(out.data(), &header, sizeof(header));
  return out;
}

}  // namespace tributary
