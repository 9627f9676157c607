#include "base/heap_trimmer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace tributary {
namespace {

class HeapTrimmerTest : public testing::Test {
 protected:
  // Work that ends with so much resident and free memory.
  void Work(uint64_t resident_bytes, size_t free_bytes) {
    resident_bytes_ = resident_bytes;
    free_bytes_ = free_bytes;
    trimmer_.Note();
    trimmer_.Tick();
  }

  uint64_t resident_bytes_ = 0;
  size_t free_bytes_ = 0;
  int trims_ = 0;
  Counter counter_;
  HeapTrimmer trimmer_{{.bytes_min = 100,
                        .free_bytes = [this] { return free_bytes_; },
                        .resident_bytes = [this] { return resident_bytes_; },
                        .trim =
                            [this] {
                              ++trims_;
                              resident_bytes_ -= std::min<uint64_t>(resident_bytes_, free_bytes_);
                            }},
                       counter_};
};

TEST_F(HeapTrimmerTest, TrimsOnceAfterWorkThatFreedMuch) {
  resident_bytes_ = 3'000;
  free_bytes_ = 1'000;
  trimmer_.Tick();
  EXPECT_EQ(trims_, 0) << "no work has ended";
  Work(3'000, 1'000);
  trimmer_.Tick();
  EXPECT_EQ(trims_, 1);
  EXPECT_EQ(counter_.value(), 1u);
}

TEST_F(HeapTrimmerTest, TrimsOnlyIfMuchIsFreeAndTheProcessHasGrown) {
  Work(3'000, 99);
  EXPECT_EQ(trims_, 0) << "too little is free";
  Work(3'000, 1'000);
  EXPECT_EQ(trims_, 1);
  Work(2'099, 1'000);
  EXPECT_EQ(trims_, 1) << "the free pages were trimmed before";
  Work(2'100, 1'000);
  EXPECT_EQ(trims_, 2) << "the process has grown";
  Work(500, 0);  // it has shrunk
  Work(600, 100);
  EXPECT_EQ(trims_, 3);
}

TEST_F(HeapTrimmerTest, TrimsAgainWhatOtherWorkHeldDuringATrim) {
  Work(10'000, 1'000);
  EXPECT_EQ(trims_, 1);
  Work(9'000, 6'000);  // the process has not grown, but more is free
  EXPECT_EQ(trims_, 2);
  Work(3'050, 6'000);
  EXPECT_EQ(trims_, 2);
}

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they have allocators of their own
TEST(Heap, CountsFreedBlocks) {
  const size_t before = FreeHeapBytes();
  std::vector<std::unique_ptr<char[]>> blocks;
  for (int i = 0; i < 20'000; ++i) blocks.push_back(std::make_unique<char[]>(2'000));
  std::unique_ptr<char[]> at_top = std::move(blocks.back());  // the heap cannot shrink
  blocks.clear();
  EXPECT_GT(FreeHeapBytes(), before + (10u << 20));
}
#endif

}  // namespace
}  // namespace tributary
