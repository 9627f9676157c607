#pragma once

#include <cstdint>
#include <fstream>
#include <string>

#include "base/heap.h"

// How much memory a test takes at most.

namespace tributary {

// Returns the largest memory since the last call of StartPeak.
inline int64_t PeakMib() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) return std::stoll(line.substr(6)) / 1024;
  }
  return 0;
}

inline int64_t StartPeak() {
  TrimHeap();
  std::ofstream("/proc/self/clear_refs") << "5" << std::flush;
  return PeakMib();
}

}  // namespace tributary
