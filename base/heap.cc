#include "base/heap.h"

#include <malloc.h>

namespace tributary {
namespace {

constexpr int kHeapsMax = 2;
constexpr int kLargeBlockBytes = 128 << 10;
constexpr int kKeptAtTopBytes = 512 << 10;

}  // namespace

void LimitHeap() {
  mallopt(M_ARENA_MAX, kHeapsMax);
  mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);  // fixed: it no longer follows the largest freed block
  mallopt(M_TRIM_THRESHOLD, kKeptAtTopBytes);
}

void TrimHeap() { malloc_trim(0); }

}  // namespace tributary
