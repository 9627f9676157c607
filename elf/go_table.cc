#include "elf/go_table.h"

#include <algorithm>
#include <string>

#include "elf/elf_format.h"

namespace tributary {
namespace {

constexpr uint64_t kTableBytesMax = 256u << 20;
constexpr uint64_t kFunctionsMax = 2u << 20;
constexpr uint64_t kSearchBytesMax = 64u << 20;
constexpr int kTablesTriedMax = 2;
constexpr size_t kChunkBytes = 256u << 10;

constexpr uint32_t kMagic2 = 0xfffffffb, kMagic16 = 0xfffffffa, kMagic18 = 0xfffffff0, kMagic20 = 0xfffffff1;
constexpr uint64_t kWordsOffset = 8;

std::optional<GoTableForm> FormOf(uint32_t magic) {
  switch (magic) {
    case kMagic2:
      return GoTableForm::kGo2;
    case kMagic16:
      return GoTableForm::kGo16;
    case kMagic18:
      return GoTableForm::kGo18;
    case kMagic20:
      return GoTableForm::kGo20;
    default:
      return std::nullopt;
  }
}

// Begin of a table as stored in the file.
struct Start {
  uint32_t magic;
  uint8_t zero[2];
  uint8_t quantum;
  uint8_t pointer_bytes;

  bool valid() const {
    return FormOf(magic) && zero[0] == 0 && zero[1] == 0 && (quantum == 1 || quantum == 4) && pointer_bytes == 8;
  }
};
static_assert(sizeof(Start) == kWordsOffset);

std::optional<GoTableHeader> ReadHeader(ElfFile& file, uint64_t offset, uint64_t size) {
  size = std::min(size, kTableBytesMax);
  char bytes[kWordsOffset + 8 * sizeof(uint64_t)];
  if (size < sizeof(bytes) || offset > file.file_size() || size > file.file_size() - offset ||
      !file.ReadAt(offset, sizeof(bytes), bytes).ok()) {
    return std::nullopt;
  }
  const std::string_view view(bytes, sizeof(bytes));
  const auto start = ReadElfStruct<Start>(view, 0);
  if (!start.valid()) return std::nullopt;
  auto word = [&](size_t i) { return ReadElfStruct<uint64_t>(view, kWordsOffset + i * sizeof(uint64_t)); };
  GoTableHeader header{.form = *FormOf(start.magic), .quantum = start.quantum, .begin = offset, .end = offset + size};
  header.count = word(0);
  uint64_t functions = sizeof(uint64_t) + kWordsOffset, data = 0, names = 0, names_end = size, files = 0, steps = 0;
  if (header.form != GoTableForm::kGo2) {
    const size_t first = header.relative() ? 3 : 2;  // index of the word with the offset of the names
    names = word(first);
    names_end = word(first + 1);
    files = word(first + 2);
    steps = word(first + 3);
    functions = data = word(first + 4);
    header.text = header.relative() ? word(2) : 0;
  }
  const uint64_t pair_bytes = 2 * header.field_bytes();
  if (functions > size || names > names_end || names_end > size || files > size || steps > size) return std::nullopt;
  if (header.count > std::min(kFunctionsMax, (size - functions) / pair_bytes)) return std::nullopt;
  header.functions = offset + functions;
  header.data = offset + data;
  header.names = offset + names;
  header.units = header.names_end = offset + names_end;
  header.files = offset + files;
  header.steps = offset + steps;
  if (header.form == GoTableForm::kGo2) {
    // The offset of the files lies after the functions and the end address of the last function.
    const uint64_t at = functions + header.count * pair_bytes + header.field_bytes();
    uint32_t place = 0;
    if (at > size - sizeof(place) || !file.ReadAt(offset + at, sizeof(place), reinterpret_cast<char*>(&place)).ok()) {
      return std::nullopt;
    }
    header.files += place;
  }
  return header;
}

void SearchSegments(ElfFile& file, const std::function<bool(const GoTableHeader&)>& take) {
  constexpr size_t kAlignment = 8;
  uint64_t left = kSearchBytesMax;
  int tried = 0;
  std::string chunk;
  for (const ElfSegment& segment : file.segments()) {
    if (segment.file_offset > file.file_size()) continue;
    const uint64_t end = segment.file_offset + std::min(segment.file_size, file.file_size() - segment.file_offset);
    uint64_t at = (segment.file_offset + kAlignment - 1) / kAlignment * kAlignment;
    for (; at < end && left > 0; at += kChunkBytes) {
      chunk.resize(std::min({uint64_t{kChunkBytes}, end - at, left}));
      left -= chunk.size();
      if (!file.ReadAt(at, chunk.size(), chunk.data()).ok()) return;
      for (size_t i = 0; i + sizeof(Start) <= chunk.size(); i += kAlignment) {
        if (!ReadElfStruct<Start>(chunk, i).valid()) continue;
        const std::optional<GoTableHeader> header = ReadHeader(file, at + i, end - at - i);
        if ((header && take(*header)) || ++tried == kTablesTriedMax) return;
      }
    }
  }
}

}  // namespace

void FindGoTables(ElfFile& file, const std::function<bool(const GoTableHeader&)>& take) {
  auto sections = file.Sections();
  bool is_go = !sections.ok() || (*sections)->empty();  // or may be Go's
  if (sections.ok()) {
    for (const ElfSection& section : **sections) {
      if (section.type == kElfSectionNobits || (section.flags & kElfSectionCompressed) != 0) continue;
      if (section.name == ".gopclntab" || section.name == ".data.rel.ro.gopclntab") {
        if (const auto header = ReadHeader(file, section.offset, section.size)) take(*header);
        return;
      }
      if (section.name == ".note.go.buildid" || section.name == ".go.buildinfo") is_go = true;
    }
  }
  if (is_go) SearchSegments(file, take);
}

}  // namespace tributary
