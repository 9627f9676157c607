#pragma once

#include <cstdint>
#include <map>
#include <optional>

namespace tributary {

// Allocates ranges of integers from [0, size). Uses the first free range that is long enough. A freed range is joined
// with its free neighbours. Free takes logarithmic time in the number of free ranges; Allocate takes linear time.
class RangeAllocator {
 public:
  explicit RangeAllocator(uint32_t size);

  // Returns the first number of a range of `count` numbers; nullopt if no free range is that long. `count` must be
  // above 0.
  std::optional<uint32_t> Allocate(uint32_t count);
  // Frees a whole range that Allocate returned.
  void Free(uint32_t first, uint32_t count);

  uint32_t free() const { return free_; }

 private:
  std::map<uint32_t, uint32_t> ranges_;  // free ranges: first → count; no two of them are adjacent
  uint32_t size_ = 0;
  uint32_t free_ = 0;
};

}  // namespace tributary
