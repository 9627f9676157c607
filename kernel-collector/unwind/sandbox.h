#pragma once

#include <cstdint>

#include "absl/status/status.h"

namespace tributary {

// Gives up all that a parser of files does not need, for good: from here on the calling process, which has one thread,
// is nobody, cannot gain rights, opens nothing, and may only read descriptors that it has or is sent, allocate up to
// `memory_bytes_max`, and answer on its socket; any other system call kills it. Errors: a kernel without seccomp
// filters.
absl::Status EnterSandbox(uint64_t memory_bytes_max);

}  // namespace tributary
