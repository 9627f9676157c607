#include "kernel-collector/unwind/range_allocator.h"

#include <iterator>

#include "base/status.h"

namespace tributary {

RangeAllocator::RangeAllocator(uint32_t size) : size_(size), free_(size) {
  if (size > 0) ranges_.emplace(0, size);
}

std::optional<uint32_t> RangeAllocator::Allocate(uint32_t count) {
  TRIBUTARY_CHECK(count > 0);
  if (count > free_) return std::nullopt;
  for (auto it = ranges_.begin(); it != ranges_.end(); ++it) {
    auto [first, length] = *it;
    if (length < count) continue;
    auto next = ranges_.erase(it);
    if (length > count) ranges_.emplace_hint(next, first + count, length - count);
    free_ -= count;
    return first;
  }
  return std::nullopt;
}

void RangeAllocator::Free(uint32_t first, uint32_t count) {
  TRIBUTARY_CHECK(count > 0 && first < size_ && count <= size_ - first);
  free_ += count;
  auto next = ranges_.lower_bound(first);
  TRIBUTARY_CHECK(next == ranges_.end() || first + count <= next->first);
  if (next != ranges_.end() && first + count == next->first) {
    count += next->second;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    auto before = std::prev(next);
    TRIBUTARY_CHECK(before->first + before->second <= first);
    if (before->first + before->second == first) {
      before->second += count;
      return;
    }
  }
  ranges_.emplace_hint(next, first, count);
}

}  // namespace tributary
