#include "base/heap.h"

#include <malloc.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

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

uint64_t ResidentBytes() {
  std::unique_ptr<FILE, int (*)(FILE*)> file(fopen("/proc/self/statm", "re"), fclose);
  unsigned long long size = 0, resident = 0;
  if (file == nullptr || fscanf(file.get(), "%llu %llu", &size, &resident) != 2) return 0;
  return resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace tributary
