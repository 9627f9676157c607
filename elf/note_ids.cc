#include "elf/note_ids.h"

#include "elf/content_hash.h"
#include "elf/elf_format.h"
#include "elf/elf_notes.h"

namespace tributary {

void NoteIds::Look(std::string_view notes, uint64_t alignment) {
  if (!gnu) {
    auto note = FindNote(notes, alignment, kGnuNoteName, kGnuBuildIdNoteType);
    // An id of another length (a linker accepts any) is not an identity: the kernel does not report it either.
    if (note && !note->empty()) gnu = ExecutableId::Make(ExecutableIdKind::kGnuBuildId, *note);
  }
  if (!go) {
    auto note = FindNote(notes, alignment, kGoNoteName, kGoBuildIdNoteType);
    if (note && !note->empty()) go = HashId(ExecutableIdKind::kGoBuildId, *note);
  }
}

}  // namespace tributary
