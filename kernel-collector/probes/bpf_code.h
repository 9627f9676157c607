#pragma once

#include <cstdint>
#include <vector>

namespace tributary {

// The range of kernel addresses with the code of a BPF program, or of one of its functions.
struct BpfCode {
  uint64_t begin = 0;
  uint32_t bytes = 0;
};

// Returns the code of all BPF programs that are loaded now. This list is needed because /proc/kallsyms contains the
// address of a program, but not its length. The list is empty without CAP_SYS_ADMIN, which kernel-collector usually
// gives up after the start. The list is also empty if the kernel hides addresses. It has at most about 16,384 entries.
// Takes some microseconds per program.
std::vector<BpfCode> ListBpfCode();

}  // namespace tributary
