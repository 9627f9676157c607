#pragma once

#include <cstdint>

namespace tributary {

// CPU time, user and system, of every thread of this process and of its children: those that were waited for, and those
// that /proc/self/task/*/children shows. Not thread-safe against a child being waited for meanwhile: it may be missing
// from one answer. A few system calls a thread.
int64_t ProcessCpuNs();

}  // namespace tributary
