#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// Limits for a process in the sandbox.
struct SandboxLimits {
  const char* name = "sandbox";   // name in process lists: comm, up to 15 bytes
  uint64_t memory_bytes_max = 0;  // size of the address space; must be set, because 0 allows no allocation
  uint64_t file_bytes_max = 0;    // size up to which the process may write files; 0: it cannot write to files
  uint64_t cpu_seconds_max = 0;   // 0: no limit; the parent process must limit the time
};

// Permanently gives up all rights that a parser of files does not need. The calling process must have only one thread.
// Afterwards the process has no capabilities, cannot gain rights, and cannot open files. If it is root and may change
// its user id, it becomes the user nobody (65534). It may only use descriptors that it has or receives, allocate
// memory, use futexes, read the clock, its process id and random bytes, and exit. It may also read the size and times
// of a file by name, because glibc implements fstat() with newfstatat. The kernel kills the process if it makes any
// other system call. Returns an error if a limit cannot be set, a right cannot be dropped, or the kernel has no seccomp
// filters.
absl::Status EnterSandbox(const SandboxLimits& limits);

}  // namespace tributary
