#include "base/heap_trimmer.h"

#include <algorithm>
#include <utility>

namespace tributary {

HeapTrimmer::HeapTrimmer(Options options, Counter& trims) : options_(std::move(options)), trims_(trims) {}

void HeapTrimmer::Tick() {
  if (!noted_.exchange(false, std::memory_order_relaxed)) return;
  // Pages that were trimmed are still free, so the free bytes alone do not show what a trim would return.
  const uint64_t resident = options_.resident_bytes();
  if (resident < resident_bytes_ + options_.bytes_min) {
    resident_bytes_ = std::min(resident_bytes_, resident);
    return;
  }
  if (options_.free_bytes() < options_.bytes_min) return;
  options_.trim();
  resident_bytes_ = options_.resident_bytes();
  trims_.Add();
}

}  // namespace tributary
