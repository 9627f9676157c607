#pragma once

#include <cstddef>

#include "base/fd.h"

namespace tributary {

// Transfer messages of known sizes over a stream socket between a process and its child. Return true for a whole
// message. Return false at the end of the stream, on an error, or after `timeout_ms` (−1: no limit). A partial message
// is lost together with the stream.
bool ReadAll(int socket, void* to, size_t bytes, int timeout_ms);
bool WriteAll(int socket, const void* from, size_t bytes, int timeout_ms);
// Do the same, and transfer a file descriptor with the message. SendWithFile sends no descriptor if `file` is -1;
// `*file` of the receiver is then unchanged. `bytes` must be much smaller than a socket's buffer.
bool SendWithFile(int socket, const void* from, size_t bytes, int file, int timeout_ms);
bool ReceiveWithFile(int socket, void* to, size_t bytes, Fd* file, int timeout_ms);

}  // namespace tributary
