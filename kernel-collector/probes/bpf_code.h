#pragma once

#include <cstdint>
#include <vector>

namespace tributary {

// The kernel addresses of the code of a BPF program, or of one of its functions.
struct BpfCode {
  uint64_t begin = 0;
  uint32_t bytes = 0;
};

// Returns the code of all programs that are loaded now. /proc/kallsyms shows where a program begins, but not its
// length. The list is empty without CAP_SYS_ADMIN, which kernel-collector usually gives up after the start. It is also
// empty if the kernel hides addresses. At most 16,384 entries. Takes some microseconds per program.
std::vector<BpfCode> ListBpfCode();

}  // namespace tributary
