#pragma once

#include <time.h>

#include <cstdint>

#include "base/types.h"

namespace tributary {

// Returns the CPU time of the calling thread.
inline int64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return time.tv_sec * kNsPerSecond + time.tv_nsec;
}

}  // namespace tributary
