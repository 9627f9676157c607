#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "base/fd.h"
#include "profile/executable_id.h"

namespace tributary {

// A loadable segment: how file offsets become ELF virtual addresses.
struct ElfSegment {
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t address = 0;
  uint64_t memory_size = 0;
  bool executable = false;
};

struct ElfSection {
  std::string_view name;  // points into the file's bytes
  uint32_t type = 0;
  uint64_t flags = 0;
  uint64_t address = 0;
  uint64_t offset = 0;
  uint64_t size = 0;
  uint32_t link = 0;
  uint32_t info = 0;
  uint64_t alignment = 0;
  uint64_t entry_size = 0;
};

// Reads one ELF64 little-endian file (x86-64, arm64) that may be hostile: every offset and size is checked before use,
// nothing is trusted, work is bounded by the limits below. Own reader on purpose: libelf maps what headers claim and
// was not written for hostile input. Errors: InvalidArgument: not such an ELF file, or it lies about its sizes;
// ResourceExhausted: more bytes than the caller allows. Thread: any, one at a time.
class ElfFile {
 public:
  static constexpr uint32_t kSegmentsMax = 512;
  static constexpr uint32_t kSectionsMax = 65'535;
  static constexpr uint64_t kNoteBytesMax = 1 << 20;

  // Reads by pread, only what is asked for: a file truncated meanwhile gives an error, not SIGBUS. Takes over `fd`.
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(Fd fd);
  // The same of a descriptor that stays its owner's.
  static absl::StatusOr<std::unique_ptr<ElfFile>> OpenCopy(int descriptor);
  // Bytes in memory (a vdso, a test). `bytes` outlive the object.
  static absl::StatusOr<std::unique_ptr<ElfFile>> FromMemory(std::string_view bytes);

  ~ElfFile();

  const std::vector<ElfSegment>& segments() const { return segments_; }
  // Read on first use; empty for a file without section headers.
  absl::StatusOr<const std::vector<ElfSection>*> Sections();
  absl::StatusOr<std::string> SectionBytes(const ElfSection& section, uint64_t bytes_max);
  // All of [offset, offset + size) of the file, or an error.
  absl::Status ReadAt(uint64_t offset, size_t size, char* out) const;

  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64
  uint16_t type() const { return type_; }        // ET_REL (kernel modules, .o, .dwo, .dwp), ET_EXEC, ET_DYN
  uint64_t file_size() const { return file_size_; }
  int descriptor() const;                    // borrowed; -1 for bytes in memory
  uint64_t entry() const { return entry_; }  // address where a process starts; 0 for none
  // Where the table that finds unwind entries lies (PT_GNU_EH_FRAME); within the file.
  const std::optional<ElfSegment>& unwind_table() const { return unwind_table_; }

  // GNU build-id, else Go build id, else content hash (see ExecutableIdKind). Never kNone.
  absl::StatusOr<ExecutableId> Identity();

 private:
  class Source;
  struct NoteSegment {
    uint64_t offset, size, alignment;
  };
  ElfFile();
  absl::Status ReadHeaders();
  absl::Status ReadSegments(uint64_t offset, uint16_t count, uint16_t entry_size);
  absl::Status ReadSections();

  std::unique_ptr<Source> source_;
  uint64_t file_size_ = 0;
  uint64_t entry_ = 0;
  uint16_t machine_ = 0;
  uint16_t type_ = 0;
  std::vector<ElfSegment> segments_;
  std::vector<NoteSegment> note_segments_;
  std::optional<ElfSegment> unwind_table_;
  std::vector<ElfSection> sections_;
  absl::Status sections_status_;
  std::string section_names_;
  bool sections_read_ = false;
  uint64_t section_header_offset_ = 0;
  uint16_t section_count_ = 0;
  uint16_t section_names_index_ = 0;
};

// ELF virtual address of a file offset, by the segment that holds it; nullopt when none does.
std::optional<uint64_t> FileOffsetToAddress(std::span<const ElfSegment> segments, uint64_t file_offset);

}  // namespace tributary
