#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "base/heap.h"

// How much memory a test takes at most.

namespace tributary {

// Returns the largest memory since the last call of StartPeak. Always 0 under a sanitizer, which keeps freed memory.
inline int64_t PeakMib() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return 0;
#endif
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  }
  return 0;
}

// Starts the peak anew and returns it.
inline int64_t StartPeak() {
  TrimHeap();
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  return PeakMib();
}

}  // namespace tributary
