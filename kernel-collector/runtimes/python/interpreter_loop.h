#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"
#include "elf/symbol_lookup.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// Returns all address ranges of the function at `function`. A compiler or a linker may have split the function: the
// parts that it expects to be used rarely are then at other addresses, and have no symbols after a strip. With bad
// profile data, most of the interpreter's loop is in such a part (Debian's python3.14). The function follows direct
// jumps to other entries of .eh_frame. An entry is a part if a jump leads into its middle, or if a jump leads to its
// begin and it jumps back into the middle of another part. Limits: 16 parts, 2 MiB of code, 4096 jumps. NotFound if
// there is no code at `function`. The input may be hostile. Takes some 5 ms for a Python.
absl::StatusOr<std::vector<RuntimeBinary::Range>> FindInterpreterLoop(ElfFile& file, const SymbolPlace& function);

}  // namespace tributary
