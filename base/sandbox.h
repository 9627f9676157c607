#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// The limits of a process in the sandbox.
struct SandboxLimits {
  const char* name = "sandbox";   // name in process lists: comm, up to 15 bytes
  uint64_t memory_bytes_max = 0;  // address space
  uint64_t file_bytes_max = 0;    // largest offset for writes into a file that the process received; 0: no writes
  uint64_t cpu_seconds_max = 0;   // 0: the process that waits for it must limit the time
};

// Permanently gives up everything that a parser of files does not need. The calling process must have one thread.
// Afterwards it has no capability, cannot gain rights, and cannot open files. If it may change its user id, it becomes
// nobody. It may only read descriptors that it has or receives, allocate, and write to descriptors that it received.
// It may also ask for the size and times of a file by name, because fstat() of glibc is newfstatat. Any other system
// call kills it. Returns an error if a limit cannot be set, a right cannot be dropped, or the kernel has no seccomp
// filters.
absl::Status EnterSandbox(const SandboxLimits& limits);

}  // namespace tributary
