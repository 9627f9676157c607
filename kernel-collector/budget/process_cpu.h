#pragma once

#include <cstdint>

namespace tributary {

// Returns the CPU time, user and system, of every thread of this process and of its children: those that were waited
// for, and those in /proc/self/task/*/children. Not thread-safe against a wait for a child at the same time: that child
// may be missing from one result. A few system calls per thread.
int64_t ProcessCpuNs();

}  // namespace tributary
