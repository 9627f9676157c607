#pragma once

#include <string_view>

#include "base/types.h"

namespace tributary {

// Returns a name of the program that a process runs: the last resort for service.name. The name must be the same after
// each start of the program. It is a part of one of the texts, or a constant.
//   a file: the file's name, without its directory
//   a file that exists only in memory ("/memfd:sealed-91173221a7ea"): its name without digits that differ at each
//     start: "sealed". If nothing is left, `comm`, unless this is the number of a descriptor; else "memfd"
//   a kernel thread: its name up to a '/'. Most kinds have one thread per CPU, or keep making new ones: "ksoftirqd/3",
//     "kworker/u9:0"
//   else `comm`
// The texts may have any bytes. `comm`: the name of the process's first thread.
std::string_view ProgramName(std::string_view executable_path, std::string_view comm, Pid parent);

}  // namespace tributary
