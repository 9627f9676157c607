#include "base/heap_trimmer.h"

#include <algorithm>
#include <utility>

namespace tributary {

HeapTrimmer::HeapTrimmer(Options options, Counter& trims) : options_(std::move(options)), trims_(trims) {}

void HeapTrimmer::Tick() {
  if (!noted_.exchange(false, std::memory_order_relaxed)) return;
  const uint64_t resident_bytes = options_.resident_bytes();
  const size_t free_bytes = options_.free_bytes();
  // Pages that were trimmed are still free, so the free bytes alone do not show what a trim would return.
  const bool has_grown =
      resident_bytes >= resident_bytes_ + options_.bytes_min || free_bytes >= free_bytes_ + options_.bytes_min;
  if (has_grown && free_bytes >= options_.bytes_min) {
    options_.trim();
    trims_.Add();
    resident_bytes_ = options_.resident_bytes();
    free_bytes_ = options_.free_bytes();
  } else {
    resident_bytes_ = std::min(resident_bytes_, resident_bytes);
    free_bytes_ = std::min(free_bytes_, free_bytes);
  }
}

}  // namespace tributary
