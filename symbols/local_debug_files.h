#pragma once

#include <string>

#include "symbols/debug_symbols.h"

namespace tributary {

// Opens other files with debug information for the executable `path`, where compilers and distributions store them.
// Package: `path`.dwp. A .dwo file: in its compilation directory, or in the executable's directory. The common file
// made by dwz: at the path that the executable contains, or under /usr/lib/debug by build-id. Use it only for trusted
// executables, because the paths that an executable contains can be any paths.
DebugFileSource LocalDebugFiles(std::string path);

}  // namespace tributary
