#pragma once

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// Returns true if the program or library is linked with the C library musl, false for glibc. Reads the program's loader
// (.interp), else the names of the needed libraries. A program that needs no library uses glibc if it has glibc's note
// .note.ABI-tag. The input may be hostile.
absl::StatusOr<bool> UsesMusl(ElfFile& file);

}  // namespace tributary
