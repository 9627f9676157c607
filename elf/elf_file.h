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

// A loadable segment. It maps file offsets to ELF virtual addresses.
struct ElfSegment {
  uint64_t file_offset = 0;
  uint64_t file_size = 0;
  uint64_t address = 0;
  uint64_t memory_size = 0;
  bool executable = false;
};

struct ElfSection {
  std::string_view name;  // points into memory of the ElfFile
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

// Reads one ELF64 little-endian file (x86-64, arm64). The file may be hostile: every offset and size is checked before
// use, and the limits below bound the time and the memory. Tributary does not use libelf, because libelf maps as many
// bytes as the headers state, and was not written for hostile input. InvalidArgument if the file is not such an ELF
// file, or if it states wrong sizes. ResourceExhausted if a section has more bytes than the caller allows. Any thread
// may use an object, but only one thread at a time.
class ElfFile {
 public:
  static constexpr uint32_t kSegmentsMax = 512;
  static constexpr uint32_t kSectionsMax = 65'535;
  static constexpr uint64_t kNoteBytesMax = 1 << 20;

  // Opens a file, and takes over `fd`. Reads by pread, and only the bytes that are needed. So if the file is truncated
  // later, reads return an error instead of raising SIGBUS.
  static absl::StatusOr<std::unique_ptr<ElfFile>> Open(Fd fd);
  // Like Open(), but duplicates the descriptor. The caller keeps `descriptor`.
  static absl::StatusOr<std::unique_ptr<ElfFile>> OpenCopy(int descriptor);
  // Reads from memory, for the vdso and for tests. `bytes` must outlive the object.
  static absl::StatusOr<std::unique_ptr<ElfFile>> FromMemory(std::string_view bytes);

  ~ElfFile();

  const std::vector<ElfSegment>& segments() const { return segments_; }
  // Returns the sections. Reads the section headers at the first call. Empty if the file has no section headers.
  absl::StatusOr<const std::vector<ElfSection>*> Sections();
  absl::StatusOr<std::string> SectionBytes(const ElfSection& section, uint64_t bytes_max);
  // Reads all of [offset, offset + size) of the file, or returns an error.
  absl::Status ReadAt(uint64_t offset, size_t size, char* out) const;

  uint16_t machine() const { return machine_; }  // EM_X86_64, EM_AARCH64
  uint16_t type() const { return type_; }        // ET_REL (kernel modules, .o, .dwo, .dwp), ET_EXEC, ET_DYN
  uint64_t file_size() const { return file_size_; }
  int descriptor() const;                    // borrowed; -1 after FromMemory
  uint64_t entry() const { return entry_; }  // address where a process starts; 0: none
  // The location of the search table for unwind entries (PT_GNU_EH_FRAME). The whole table is within the file.
  const std::optional<ElfSegment>& unwind_table() const { return unwind_table_; }

  // Returns the GNU build-id, else the Go build id, else a content hash (see ExecutableIdKind). Never returns kNone.
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

// Returns the ELF virtual address at which the byte at `file_offset` is mapped. Returns nullopt if no segment contains
// this byte.
std::optional<uint64_t> FileOffsetToAddress(std::span<const ElfSegment> segments, uint64_t file_offset);

}  // namespace tributary
