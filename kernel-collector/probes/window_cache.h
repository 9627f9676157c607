#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "kernel-collector/probes/shared_array.h"

namespace tributary {

// Limits how many windows of several arrays are mapped at the same time. The window that is unmapped was not used
// again since the last round through all windows, if there is such a window (a "clock"). Not thread-safe.
class WindowCache {
 public:
  explicit WindowCache(size_t windows_max) : windows_max_(windows_max) {}

  // Maps the windows of `part`, which is within arrays[array], and has fewer windows than the limit. `arrays` must only
  // grow between calls. Returns false if mmap fails. Windows of `part` may then be mapped or not.
  [[nodiscard]] bool Map(std::span<SharedArray> arrays, size_t array, std::span<const std::byte> part);

 private:
  struct Window {
    size_t array = 0, number = 0;
    bool used = false;  // again, since the hand has passed it
  };
  struct Range {
    size_t array, first, last;
    bool Contains(const Window& window) const {
      return window.array == array && window.number >= first && window.number <= last;
    }
  };
  // Returns an entry for a new window, after it has unmapped another window, but none of `needed`. Returns null if mmap
  // fails.
  Window* MakeRoom(std::span<SharedArray> arrays, const Range& needed);

  const size_t windows_max_;
  std::vector<Window> windows_;  // the mapped ones
  size_t hand_ = 0;
};

}  // namespace tributary
