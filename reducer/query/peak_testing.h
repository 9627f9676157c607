#pragma once

#include <cstdint>
#include <fstream>

#include "base/heap.h"
#include "base/process_status_testing.h"

// How much memory a test takes at most.

namespace tributary {

// Returns the largest memory since the last call of StartPeak. Always 0 under a sanitizer, which keeps freed memory.
inline int64_t PeakMib() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  return StatusKib("VmHWM:") / 1024;
}

// Starts the peak anew and returns it.
inline int64_t StartPeak() {
  TrimHeap();
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  return PeakMib();
}

}  // namespace tributary
