#pragma once

#include <string>

#include "base/fd.h"

namespace tributary {

// Opens the file `path`, relative to `directory`, for reading. The path may come from another machine, so a file
// outside of the directory is not opened: the path may not be absolute, and neither `..` nor a symbolic link may lead
// out of the directory. Does not wait for the other end of a FIFO. If the Fd is invalid, errno says why: EXDEV if the
// path leads out of the directory.
//
// Uses openat2 (Linux 5.6). If the kernel or a seccomp filter does not allow this call, uses OpenWithoutLinks.
Fd OpenBeneath(int directory, const std::string& path);

// Does the same with older system calls. It opens fewer paths: no part of the path may be `..` or a symbolic link.
// errno is ELOOP if a part is a link.
Fd OpenWithoutLinks(int directory, const std::string& path);

}  // namespace tributary
