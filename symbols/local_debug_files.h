#pragma once

#include <string>

#include "symbols/debug_symbols.h"

namespace tributary {

// Opens a file's debug information where compilers and distributions put it: FILE.dwp; a .dwo under its compilation
// directory or next to the file; the file that dwz made, by the path in the file, or by build-id under /usr/lib/debug.
// Use only for trusted files: paths in a file can lead anywhere.
DebugFileSource LocalDebugFiles(std::string path);

}  // namespace tributary
