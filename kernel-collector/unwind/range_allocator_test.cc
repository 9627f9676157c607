#include "kernel-collector/unwind/range_allocator.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace tributary {
namespace {

TEST(RangeAllocator, TakesTheFirstFitAndJoinsFreedRanges) {
  RangeAllocator allocator(100);
  EXPECT_EQ(allocator.Allocate(40), 0u);
  EXPECT_EQ(allocator.Allocate(40), 40u);
  EXPECT_EQ(allocator.Allocate(40), std::nullopt);
  EXPECT_EQ(allocator.Allocate(20), 80u);
  allocator.Free(0, 40);
  allocator.Free(80, 20);
  EXPECT_EQ(allocator.Allocate(60), std::nullopt);
  allocator.Free(40, 40);
  EXPECT_EQ(allocator.Allocate(100), 0u);
  EXPECT_EQ(RangeAllocator(0).Allocate(1), std::nullopt);
}

TEST(RangeAllocator, NeverGivesTheSameNumberTwice) {
  for (uint32_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937 random(seed);
    constexpr uint32_t kSize = 512;
    RangeAllocator allocator(kSize);
    std::vector<bool> used(kSize);
    std::vector<std::pair<uint32_t, uint32_t>> held;
    uint32_t free = kSize;
    for (int i = 0; i < 2000; ++i) {
      if (random() % 2 == 0) {
        uint32_t count = 1 + random() % 64;
        uint32_t longest = 0, run = 0, expected = kSize;
        for (uint32_t at = 0; at < kSize; ++at) {
          run = used[at] ? 0 : run + 1;
          longest = std::max(longest, run);
          if (run == count && expected == kSize) expected = at + 1 - count;
        }
        auto first = allocator.Allocate(count);
        ASSERT_EQ(first.has_value(), longest >= count);
        if (!first) continue;
        ASSERT_EQ(*first, expected);
        for (uint32_t at = *first; at < *first + count; ++at) used[at] = true;
        held.emplace_back(*first, count);
        free -= count;
      } else if (!held.empty()) {
        std::swap(held[random() % held.size()], held.back());
        auto [first, count] = held.back();
        held.pop_back();
        allocator.Free(first, count);
        for (uint32_t at = first; at < first + count; ++at) used[at] = false;
        free += count;
      }
      ASSERT_EQ(allocator.free(), free);
    }
  }
}

}  // namespace
}  // namespace tributary
