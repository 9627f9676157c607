#pragma once

#include <cstddef>

#include "base/fd.h"

namespace tributary {

// Transfer messages of known sizes over a stream socket between a process and its child. Return true for a whole
// message. Return false at the end of the stream, on an error, or after `timeout_ms` (−1: no limit). A partial message
// is lost together with the stream.
bool ReadAll(int socket, void* to, size_t bytes, int timeout_ms);
bool WriteAll(int socket, const void* from, size_t bytes, int timeout_ms);
// The same with a file, unless `file` is -1. The receiver gets the file as its own descriptor. `bytes` must be much
// smaller than a socket's buffer.
bool SendWithFile(int socket, const void* from, size_t bytes, int file, int timeout_ms);
bool ReceiveWithFile(int socket, void* to, size_t bytes, Fd* file, int timeout_ms);

}  // namespace tributary
