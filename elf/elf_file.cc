#include "elf/elf_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/status.h"
#include "elf/content_hash.h"
#include "elf/elf_format.h"
#include "elf/elf_source.h"
#include "elf/note_ids.h"

namespace tributary {
namespace {

// Longer names are cut. Without this limit, sections that share one endless name would each search all of it.
constexpr size_t kSectionNameBytesMax = 4096;
constexpr uint64_t kSectionNamesBytesMax = 16u << 20;

absl::Status Malformed(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("ELF file: {}", what));
}

// Returns true if [offset, offset + size) lies within `end` bytes.
bool Fits(uint64_t offset, uint64_t size, uint64_t end) { return offset <= end && size <= end - offset; }

}  // namespace

absl::Status ElfFile::Source::Read(uint64_t offset, size_t size, char* out) const {
  if (!fd_.valid()) {
    if (!Fits(offset, size, memory_.size())) return Malformed("a read is past the end of the file");
    std::copy_n(memory_.data() + offset, size, out);
    return absl::OkStatus();
  }
  while (size > 0) {
    ssize_t n = pread(fd_.get(), out, size, static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return ErrnoStatus("read", "ELF file", errno);
    if (n == 0) return Malformed("the file became shorter while it was read");
    out += n;
    offset += static_cast<uint64_t>(n);
    size -= static_cast<size_t>(n);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ElfFile::Source::Read(uint64_t offset, size_t size) const {
  std::string bytes(size, '\0');
  RETURN_IF_ERROR(Read(offset, size, bytes.data()));
  return bytes;
}

ElfFile::ElfFile() = default;
ElfFile::~ElfFile() = default;

int ElfFile::descriptor() const { return source_->descriptor(); }

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::Open(Fd fd) {
  struct stat info;
  if (fstat(fd.get(), &info) != 0) return ErrnoStatus("fstat", "ELF file", errno);
  if (!S_ISREG(info.st_mode)) return Malformed("not a regular file");
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->file_size_ = static_cast<uint64_t>(info.st_size);
  file->source_ = std::make_unique<Source>(std::move(fd));
  RETURN_IF_ERROR(file->ReadHeaders());
  return file;
}

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::OpenCopy(int descriptor) {
  Fd copy(fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return ErrnoStatus("dup", "ELF file", errno);
  return Open(std::move(copy));
}

absl::StatusOr<std::unique_ptr<ElfFile>> ElfFile::FromMemory(std::string_view bytes) {
  std::unique_ptr<ElfFile> file(new ElfFile);
  file->file_size_ = bytes.size();
  file->source_ = std::make_unique<Source>(bytes);
  RETURN_IF_ERROR(file->ReadHeaders());
  return file;
}

absl::Status ElfFile::ReadHeaders() {
  ElfHeader header;
  if (file_size_ < sizeof(header)) return Malformed("shorter than its header");
  RETURN_IF_ERROR(source_->Read(0, sizeof(header), reinterpret_cast<char*>(&header)));
  constexpr std::string_view kForm("\x02\x01\x01");  // 64 bits, little-endian, version 1
  const std::string_view ident(reinterpret_cast<const char*>(header.ident), sizeof(header.ident));
  if (!ident.starts_with(kElfMagic) || !ident.substr(kElfMagic.size()).starts_with(kForm)) {
    return Malformed("not 64-bit little-endian ELF");
  }
  if (header.type < kElfTypeRelocatable || header.type > kElfTypeShared)
    return Malformed("not a program, library or object file");
  if (header.machine != kElfMachineX86_64 && header.machine != kElfMachineArm64)
    return Malformed("machine type is neither x86_64 nor arm64");
  machine_ = header.machine;
  type_ = header.type;
  entry_ = header.entry;
  RETURN_IF_ERROR(ReadSegments(header.program_header_offset, header.program_header_count, header.program_header_size));

  if (header.section_header_offset != 0 && header.section_header_size != sizeof(ElfSectionHeader)) {
    return Malformed("section headers have a wrong size");
  }
  section_header_offset_ = header.section_header_offset;
  section_count_ = header.section_header_count;
  section_names_index_ = header.section_names_index;
  return absl::OkStatus();
}

absl::Status ElfFile::ReadSegments(uint64_t offset, uint16_t count, uint16_t entry_size) {
  if (count == 0) return absl::OkStatus();
  if (entry_size != sizeof(ElfProgramHeader)) return Malformed("program headers have a wrong size");
  if (count > kSegmentsMax) return Malformed("too many program headers");
  if (!Fits(offset, count * sizeof(ElfProgramHeader), file_size_))
    return Malformed("program headers are past the end of the file");
  ASSIGN_OR_RETURN(std::string bytes, source_->Read(offset, count * sizeof(ElfProgramHeader)));
  for (uint16_t i = 0; i < count; ++i) {
    auto header = ReadElfStruct<ElfProgramHeader>(bytes, i * sizeof(ElfProgramHeader));
    if (header.type == kElfSegmentUnwindTable && Fits(header.offset, header.file_size, file_size_)) {
      unwind_table_ =
          ElfSegment{.file_offset = header.offset, .file_size = header.file_size, .address = header.address};
    }
    if (header.type != kElfSegmentLoad && header.type != kElfSegmentNote) continue;
    // Files that contain only symbols keep their segments without bytes, at the offsets of the original file.
    if (header.file_size > 0 && !Fits(header.offset, header.file_size, file_size_)) {
      return Malformed("a segment is past the end of the file");
    }
    if (header.type == kElfSegmentNote) {
      note_segments_.push_back({header.offset, header.file_size, header.alignment});
      continue;
    }
    if (header.file_size > header.memory_size) return Malformed("a segment is larger in the file than in memory");
    if (!Fits(header.address, header.memory_size, UINT64_MAX))
      return Malformed("the addresses of a segment are too high");
    segments_.push_back({.file_offset = header.offset,
                         .file_size = header.file_size,
                         .address = header.address,
                         .memory_size = header.memory_size,
                         .executable = (header.flags & kElfSegmentExecutable) != 0});
  }
  return absl::OkStatus();
}

absl::StatusOr<const std::vector<ElfSection>*> ElfFile::Sections() {
  if (!sections_read_) {
    sections_status_ = ReadSections();
    if (!sections_status_.ok()) sections_.clear();
    sections_read_ = true;
  }
  if (!sections_status_.ok()) return sections_status_;
  return &sections_;
}

absl::Status ElfFile::ReadSections() {
  if (section_header_offset_ == 0) return absl::OkStatus();
  uint64_t count = section_count_;
  uint64_t names_index = section_names_index_;
  if (count == 0 || names_index == kElfIndexExtended) {
    // Numbers too large for the file header are stored in section 0.
    if (!Fits(section_header_offset_, sizeof(ElfSectionHeader), file_size_))
      return Malformed("section headers are past the end of the file");
    ElfSectionHeader first;
    RETURN_IF_ERROR(source_->Read(section_header_offset_, sizeof(first), reinterpret_cast<char*>(&first)));
    if (count == 0) count = first.size;
    if (names_index == kElfIndexExtended) names_index = first.link;
  }
  if (count > kSectionsMax) return Malformed("too many sections");
  if (!Fits(section_header_offset_, count * sizeof(ElfSectionHeader), file_size_)) {
    return Malformed("section headers are past the end of the file");
  }
  ASSIGN_OR_RETURN(std::string bytes, source_->Read(section_header_offset_, count * sizeof(ElfSectionHeader)));
  if (names_index != 0 && names_index < count) {
    auto names = ReadElfStruct<ElfSectionHeader>(bytes, names_index * sizeof(ElfSectionHeader));
    if (names.type == kElfSectionNobits || !Fits(names.offset, names.size, file_size_)) {
      return Malformed("section names have no bytes in the file, or are past its end");
    }
    if (names.size > kSectionNamesBytesMax) return Malformed("section names are too large");
    ASSIGN_OR_RETURN(section_names_, source_->Read(names.offset, names.size));
  }
  sections_.reserve(count);
  for (size_t i = 0; i < count; ++i) {
    auto header = ReadElfStruct<ElfSectionHeader>(bytes, i * sizeof(ElfSectionHeader));
    std::string_view name;
    if (header.name < section_names_.size()) {
      name = std::string_view(section_names_).substr(header.name, kSectionNameBytesMax);
      name = name.substr(0, name.find('\0'));
    }
    sections_.push_back({.name = name,
                         .type = header.type,
                         .flags = header.flags,
                         .address = header.address,
                         .offset = header.offset,
                         .size = header.size,
                         .link = header.link,
                         .info = header.info,
                         .alignment = header.alignment,
                         .entry_size = header.entry_size});
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> ElfFile::SectionBytes(const ElfSection& section, uint64_t bytes_max) {
  if (section.type == kElfSectionNobits) return Malformed("a needed section has no bytes in the file");
  if (!Fits(section.offset, section.size, file_size_)) return Malformed("a section is past the end of the file");
  if (section.size > bytes_max) {
    return Error(absl::StatusCode::kResourceExhausted,
                 fmt::format("ELF file: a section has {} bytes, and the limit is {} bytes", section.size, bytes_max));
  }
  return source_->Read(section.offset, section.size);
}

absl::Status ElfFile::ReadAt(uint64_t offset, size_t size, char* out) const { return source_->Read(offset, size, out); }

absl::StatusOr<ExecutableId> ElfFile::Identity() {
  NoteIds ids;
  uint64_t budget = kNoteBytesMax;
  for (const NoteSegment& segment : note_segments_) {
    if (segment.size > budget) continue;
    budget -= segment.size;
    ASSIGN_OR_RETURN(std::string notes, source_->Read(segment.offset, segment.size));
    ids.Look(notes, segment.alignment);
  }
  if (!ids.gnu) {
    // Old linkers and some strip tools leave notes that no segment covers. A file gets an identity even if its section
    // headers are inconsistent.
    if (auto sections = Sections(); sections.ok()) {
      for (const ElfSection& section : **sections) {
        if (section.type != kElfSectionNote || section.size > budget) continue;
        auto notes = SectionBytes(section, budget);
        if (!notes.ok()) continue;
        budget -= section.size;
        ids.Look(*notes, 4);
      }
    }
  }
  if (ids.gnu) return *ids.gnu;
  if (ids.go) return *ids.go;

  size_t part = std::min<uint64_t>(kContentHashEndBytes, file_size_);
  ASSIGN_OR_RETURN(const std::string head, source_->Read(0, part));
  ASSIGN_OR_RETURN(const std::string tail, source_->Read(file_size_ - part, part));
  return ContentHash(head, tail, file_size_);
}

std::optional<uint64_t> FileOffsetToAddress(std::span<const ElfSegment> segments, uint64_t file_offset) {
  for (const ElfSegment& segment : segments) {
    if (file_offset >= segment.file_offset && file_offset - segment.file_offset < segment.file_size) {
      return segment.address + (file_offset - segment.file_offset);
    }
  }
  return std::nullopt;
}

}  // namespace tributary
