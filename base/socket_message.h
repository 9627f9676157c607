#pragma once

#include <cstddef>

#include "base/fd.h"

namespace tributary {

// Send and receive messages over a stream socket between a process and its child. Both sides must know the size of each
// message. Return true if the whole message was transferred. Return false at the end of the stream, on an error, or
// after `timeout_ms` (−1: no limit). Do not use the socket after false, because a part of the message may have been
// transferred.
bool ReadAll(int socket, void* to, size_t bytes, int timeout_ms);
bool WriteAll(int socket, const void* from, size_t bytes, int timeout_ms);
// Do the same, and transfer a file descriptor with the message. If `file` is -1, SendWithFile sends no descriptor, and
// ReceiveWithFile leaves `*file` unchanged. `bytes`, the size of the message, must be much smaller than a socket's
// buffer. `timeout_ms` limits only the wait until the socket is ready: ReceiveWithFile waits without a limit for the
// rest of a message that has begun. So the sender must be trusted.
bool SendWithFile(int socket, const void* from, size_t bytes, int file, int timeout_ms);
bool ReceiveWithFile(int socket, void* to, size_t bytes, Fd* file, int timeout_ms);
// Returns true if the socket becomes readable within `timeout_ms`: a message has come, or the stream has ended.
bool WaitForMessage(int socket, int timeout_ms);

}  // namespace tributary
