#pragma once

#include <cstdint>

namespace tributary {

// Returns the CPU time, user and system, of this process and of its children. Counts ended children that were waited
// for, and the running children in /proc/self/task/*/children. If another thread waits for a child during the call, the
// result may lack that child. Makes a few system calls per thread.
int64_t ProcessCpuNs();

}  // namespace tributary
