#include "base/heap_trimmer.h"

#include <utility>

namespace tributary {

HeapTrimmer::HeapTrimmer(Options options, Counter& trims) : options_(std::move(options)), trims_(trims) {}

void HeapTrimmer::Tick() {
  if (!noted_.exchange(false, std::memory_order_relaxed) || options_.free_bytes() < options_.free_bytes_min) return;
  options_.trim();
  trims_.Add();
}

}  // namespace tributary
