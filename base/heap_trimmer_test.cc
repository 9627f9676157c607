#include "base/heap_trimmer.h"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

namespace tributary {
namespace {

TEST(HeapTrimmer, TrimsOnceAfterWorkThatFreedMuch) {
  size_t free_bytes = 0;
  int trims = 0;
  Counter counter;
  HeapTrimmer trimmer({.free_bytes_min = 100, .free_bytes = [&] { return free_bytes; }, .trim = [&] { ++trims; }},
                      counter);
  free_bytes = 1'000;
  trimmer.Tick();
  EXPECT_EQ(trims, 0) << "no work has ended";
  trimmer.Note();
  trimmer.Note();
  trimmer.Tick();
  trimmer.Tick();
  EXPECT_EQ(trims, 1);
  free_bytes = 99;
  trimmer.Note();
  trimmer.Tick();
  EXPECT_EQ(trims, 1) << "too little is free";
  EXPECT_EQ(counter.value(), 1u);
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
