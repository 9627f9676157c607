#pragma once

#include <string>

#include "symbols/debug_symbols.h"

namespace tributary {

// Opens a file's debug information where compilers and distributions leave it: FILE.dwp; a .dwo under the directory of
// its compilation, or beside the file; what dwz moved, by the path that the file says, or by build-id under
// /usr/lib/debug. For files of one's own: paths in a file lead anywhere.
DebugFileSource LocalDebugFiles(std::string path);

}  // namespace tributary
