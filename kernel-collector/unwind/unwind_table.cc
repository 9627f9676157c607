#include "kernel-collector/unwind/unwind_table.h"

#include <algorithm>

namespace tributary {

std::optional<TextPages> TextPagesOf(const std::vector<ElfSegment>& segments) {
  // One executable must leave space for others, however odd its segments are.
  constexpr uint64_t kPagesMax = TRIB_PAGES_MAX / 2;
  uint64_t first = UINT64_MAX, last = 0;
  for (const ElfSegment& segment : segments) {
    if (!segment.executable || segment.memory_size == 0) continue;
    if (segment.address + (segment.memory_size - 1) < segment.address) continue;
    first = std::min(first, segment.address >> TRIB_PAGE_SHIFT);
    last = std::max(last, (segment.address + (segment.memory_size - 1)) >> TRIB_PAGE_SHIFT);
  }
  if (first > last || last - first >= kPagesMax || last == UINT64_MAX >> TRIB_PAGE_SHIFT) return std::nullopt;
  return TextPages{first, static_cast<uint32_t>(last - first + 1)};
}

}  // namespace tributary
