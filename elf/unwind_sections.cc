#include "elf/unwind_sections.h"

#include <algorithm>
#include <string_view>

#include "base/status.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

using Kind = UnwindSource::Kind;

absl::Status Malformed(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, "unwind sections: " + std::string(what));
}

// Returns the segment that holds `address` and has bytes for it in the file.
const ElfSegment* SegmentAt(const ElfFile& file, uint64_t address) {
  for (const ElfSegment& segment : file.segments()) {
    if (address >= segment.address && address - segment.address < segment.file_size) return &segment;
  }
  return nullptr;
}

// LSB, ".eh_frame_hdr": version, three encodings, pointer to .eh_frame, count, table. This function supports the
// encodings that linkers write. With other encodings the table is built by a scan.
absl::Status ReadSearchTable(ElfFile& file, const ElfSegment& header, UnwindSections* out) {
  constexpr size_t kHeaderBytesMax = 4 + 8 + 8;
  char bytes[kHeaderBytesMax];
  size_t size = std::min<uint64_t>(header.file_size, kHeaderBytesMax);
  RETURN_IF_ERROR(file.ReadAt(header.file_offset, size, bytes));
  ByteReader reader(std::string_view(bytes, size));
  uint8_t version = reader.Byte(), frame_encoding = reader.Byte(), count_encoding = reader.Byte(),
          table_encoding = reader.Byte();
  if (reader.bad() || version != 1 || frame_encoding == kPointerOmit) return absl::OkStatus();
  auto frame = ReadPointer(reader, frame_encoding, header.address + 4);
  if (!frame || reader.bad()) return absl::OkStatus();
  const ElfSegment* segment = SegmentAt(file, *frame);
  if (segment == nullptr) return Malformed(".eh_frame is outside of the segments of the file");
  uint64_t before = *frame - segment->address;
  out->kind = Kind::kEhFrame;
  out->section = {.file_offset = segment->file_offset + before,
                  .size = std::min(segment->file_size - before, UnwindSource::kSectionBytesMax),
                  .address = *frame};
  out->ends_at_mark = true;
  if (count_encoding == kPointerOmit || table_encoding != (kPointerDataRelative | kPointerS4)) return absl::OkStatus();
  auto count = ReadPointerNumber(reader, count_encoding);
  if (!count || reader.bad()) return absl::OkStatus();
  uint64_t used = size - reader.left();
  if (*count > (header.file_size - used) / 8) return Malformed("the search table is larger than its segment");
  out->has_table = true;
  out->table_offset = header.file_offset + used;
  out->table_base = header.address;
  out->table_count = *count;
  return absl::OkStatus();
}

bool Usable(const ElfFile& file, const ElfSection& section) {
  return section.type != kElfSectionNobits && section.size != 0 && section.offset <= file.file_size() &&
         section.size <= file.file_size() - section.offset;
}

// Returns the section to scan: .eh_frame, or else .debug_frame.
const ElfSection* FindSection(ElfFile& file) {
  auto sections = file.Sections();
  if (!sections.ok()) return nullptr;  // a running program needs no section headers
  const ElfSection* found = nullptr;
  for (const ElfSection& section : **sections) {
    if (!Usable(file, section)) continue;
    if (section.name == ".eh_frame" && !IsCompressed(section)) return &section;
    if (found == nullptr && (section.name == ".debug_frame" || section.name == ".zdebug_frame")) found = &section;
  }
  return found;
}

absl::Status FindBySectionHeaders(ElfFile& file, UnwindSections* out) {
  const ElfSection* section = FindSection(file);
  if (section == nullptr) return absl::OkStatus();
  bool eh_frame = section->name == ".eh_frame";
  if (!eh_frame && out->kind == Kind::kEhFrame) return absl::OkStatus();  // .eh_frame is already known
  CfiSection place{.file_offset = section->offset,
                   .size = std::min(section->size, UnwindSource::kSectionBytesMax),
                   .address = section->address,
                   .eh_frame = eh_frame};
  if (IsCompressed(*section)) {
    ASSIGN_OR_RETURN(CompressedSection compressed, ReadCompressedHeader(file, *section));
    if (std::max(compressed.size, compressed.raw_size) > kDecompressedBytesMax) return absl::OkStatus();
    place.file_offset = 0;
    place.size = compressed.raw_size;
    out->compressed = compressed;
  }
  out->kind = eh_frame ? Kind::kEhFrame : Kind::kDebugFrame;
  out->section = place;
  out->ends_at_mark = false;
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<UnwindSections> FindUnwindSections(ElfFile& file) {
  UnwindSections out;
  if (file.unwind_table()) RETURN_IF_ERROR(ReadSearchTable(file, *file.unwind_table(), &out));
  if (!out.has_table) RETURN_IF_ERROR(FindBySectionHeaders(file, &out));
  return out;
}

AddressRange TextOf(const ElfFile& file) {
  AddressRange text{UINT64_MAX, 0};
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable || segment.file_size == 0) continue;
    text.begin = std::min(text.begin, segment.address);
    text.end = std::max(text.end, segment.address + segment.file_size);
  }
  return text.end > text.begin ? text : AddressRange{};
}

}  // namespace tributary
