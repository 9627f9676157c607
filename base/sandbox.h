#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// What a process in the sandbox may still use.
struct SandboxLimits {
  const char* name = "sandbox";   // what lists of processes show: comm, of up to 15 bytes
  uint64_t memory_bytes_max = 0;  // of address space
  uint64_t file_bytes_max = 0;    // how far it may write into a file that it was handed; 0: not at all
  uint64_t cpu_seconds_max = 0;   // 0: whoever waits for it limits that
};

// Gives up all that a parser of files does not need, for good. From here on the calling process, which has one thread,
// has no capability, cannot gain rights, and opens nothing; if it may change its user id, it is nobody. It may only
// read descriptors that it has or is sent, allocate, and write to what it was handed; any other system call kills it.
// Errors: a kernel without seccomp filters.
absl::Status EnterSandbox(const SandboxLimits& limits);

}  // namespace tributary
