#include "kernel-collector/probes/window_cache.h"

#include <utility>

#include "base/status.h"

namespace tributary {

bool WindowCache::Map(std::span<SharedArray> arrays, size_t array, std::span<const std::byte> part) {
  if (part.empty()) return true;
  const size_t first = arrays[array].WindowOf(part.data()), last = arrays[array].WindowOf(&part.back());
  TRIBUTARY_CHECK(last - first + 1 < windows_max_);
  const Range needed{array, first, last};
  for (Window& window : windows_) window.used |= needed.Contains(window);
  for (size_t number = first; number <= last; ++number) {
    if (arrays[array].IsMapped(number)) continue;
    Window* window = MakeRoom(arrays, needed);
    if (window == nullptr) return false;
    if (!arrays[array].MapWindow(number)) {
      std::swap(*window, windows_.back());
      windows_.pop_back();
      return false;
    }
    *window = {array, number};
  }
  return true;
}

WindowCache::Window* WindowCache::MakeRoom(std::span<SharedArray> arrays, const Range& needed) {
  if (windows_.size() < windows_max_) return &windows_.emplace_back();
  while (true) {
    hand_ = (hand_ + 1) % windows_.size();
    if (!needed.Contains(windows_[hand_]) && !std::exchange(windows_[hand_].used, false)) break;
  }
  Window& oldest = windows_[hand_];
  return arrays[oldest.array].UnmapWindow(oldest.number) ? &oldest : nullptr;
}

}  // namespace tributary
