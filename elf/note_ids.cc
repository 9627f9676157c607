#include <openssl/sha.h>

#include <algorithm>
#include <array>

#include "base/status.h"
#include "elf/content_hash.h"
#include "elf/elf_file.h"
#include "elf/elf_format.h"
#include "elf/elf_notes.h"
#include "elf/elf_source.h"

namespace tributary {
namespace {

constexpr size_t kHashBytes = 16;  // kept of the SHA-256

std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  return ExecutableId::Make(kind, std::span(digest).first(kHashBytes));
}

// What identities a run of notes holds; the first of each kind stays.
struct NoteIds {
  std::optional<ExecutableId> gnu, go;

  void Look(std::string_view notes, uint64_t alignment) {
    if (!gnu) {
      auto note = FindNote(notes, alignment, kGnuNoteName, kGnuBuildIdNoteType);
      // One of another length (a linker takes any) is no identity: the kernel does not report it either.
      if (note && !note->empty()) gnu = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, *note);
    }
    if (!go) {
      auto note = FindNote(notes, alignment, kGoNoteName, kGoBuildIdNoteType);
      if (note && !note->empty()) go = HashId(ExecutableIdKind::kGoBuildId, *note);
    }
  }
};

}  // namespace

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
    // Old linkers and some strip tools leave notes that no segment covers. Lying section headers are no reason to
    // give the file no identity.
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

ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size) {
  std::string hashed(first);
  hashed += last;
  for (int shift = 56; shift >= 0; shift -= 8) hashed.push_back(static_cast<char>(size >> shift));
  return *HashId(ExecutableIdKind::kContentHash, hashed);
}

}  // namespace tributary
