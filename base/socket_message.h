#pragma once

#include <cstddef>

#include "base/fd.h"

namespace tributary {

// Messages of known sizes over a stream socket between a process and its child: whole, or false: at the end of the
// stream, on an error, or when `timeout_ms` (−1: none) have passed. What was sent until then is lost with the stream.
bool ReadAll(int socket, void* to, size_t bytes, int timeout_ms);
bool WriteAll(int socket, const void* from, size_t bytes, int timeout_ms);
// With a file, if `file` is not -1, which the receiver gets as a descriptor of its own. `bytes` are far fewer than a
// socket's buffer has room for.
bool SendWithFile(int socket, const void* from, size_t bytes, int file, int timeout_ms);
bool ReceiveWithFile(int socket, void* to, size_t bytes, Fd* file, int timeout_ms);

}  // namespace tributary
