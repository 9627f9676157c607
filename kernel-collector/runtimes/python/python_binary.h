#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"
#include "kernel-collector/processes/runtime_binary.h"

namespace tributary {

// Recognises a file that contains the interpreter of CPython 3.6 to 3.14: a libpython, a program with a static or an
// embedded libpython, or a renamed copy of one. Returns null if the file contains no CPython. A program that only needs
// a libpython contains none. For such files, it reads little more than the headers and the dynamic symbols' names.
// `path` is the file's path in the process; it may be any text. Unimplemented: the file contains a CPython of another
// version, or one whose structures are not as in the sources of its version. Other errors: the file cannot be read, or
// is malformed. The input may be hostile. Any thread may call it.
absl::StatusOr<RuntimeBinaryPtr> ReadPythonBinary(ElfFile& file, std::string_view path);

}  // namespace tributary
