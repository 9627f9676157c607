#pragma once

#include <cstdint>
#include <vector>

namespace tributary {

// Where in the kernel the code of a BPF program, or of a function of one, is.
struct BpfCode {
  uint64_t begin = 0;
  uint32_t bytes = 0;
};

// Of all programs that are loaded now; kallsyms knows where they begin, and not how long they are. Empty without
// CAP_SYS_ADMIN, which kernel-collector most often gives up once it has started, and where addresses are hidden. At
// most 16,384. Some microseconds a program.
std::vector<BpfCode> ListBpfCode();

}  // namespace tributary
