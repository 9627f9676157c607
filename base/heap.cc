#include "base/heap.h"

#include <malloc.h>

namespace tributary {

void LimitHeap(const HeapLimits& limits) {
  mallopt(M_ARENA_MAX, limits.heaps_max);
  mallopt(M_MMAP_THRESHOLD, static_cast<int>(limits.large_block_bytes));  // fixed: does not follow freed blocks
  mallopt(M_TRIM_THRESHOLD, static_cast<int>(limits.kept_at_top_bytes));
}

void TrimHeap() { malloc_trim(0); }

size_t FreeHeapBytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.fordblks;
}

}  // namespace tributary
