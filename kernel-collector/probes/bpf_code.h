#pragma once

#include <cstdint>
#include <vector>

namespace tributary {

// The place in the kernel of the code of a BPF program or of one of its functions.
struct BpfCode {
  uint64_t begin = 0;
  uint32_t bytes = 0;
};

// Returns the code of all programs that are loaded now. /proc/kallsyms shows where a program begins, but not its
// length. Empty without CAP_SYS_ADMIN, which kernel-collector usually gives up after the start, and empty where
// addresses are hidden. At most 16,384 entries. Takes some microseconds per program.
std::vector<BpfCode> ListBpfCode();

}  // namespace tributary
