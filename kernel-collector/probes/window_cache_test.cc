#include "kernel-collector/probes/window_cache.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <random>
#include <string>

namespace tributary {
namespace {

constexpr size_t kWindow = SharedArray::kWindowBytes, kWords = kWindow / sizeof(uint64_t);

class WindowCacheTest : public testing::Test {
 protected:
  // A memory file instead of a BPF array: mmap works in the same way.
  void AddArray(size_t windows, int flags = O_RDWR) {
    Fd file(memfd_create("array", MFD_CLOEXEC));
    ASSERT_EQ(ftruncate(file.get(), static_cast<off_t>(windows * kWindow)), 0);
    const std::string path = "/proc/self/fd/" + std::to_string(file.get());
    auto array = SharedArray::Reserve(Fd(open(path.c_str(), flags | O_CLOEXEC)), windows * kWindow, "array");
    ASSERT_TRUE(array.ok()) << array.status();
    arrays_.push_back(*std::move(array));
  }
  std::span<uint64_t> Words(size_t array, size_t first, size_t count) {
    return arrays_[array].As<uint64_t>().subspan(first, count);
  }
  bool Map(WindowCache& cache, size_t array, size_t first, size_t count = 1) {
    return cache.Map(arrays_, array, std::as_bytes(Words(array, first, count)));
  }
  size_t Mapped() {
    size_t mapped = 0;
    for (const SharedArray& array : arrays_) {
      const size_t windows = array.As<uint64_t>().size() / kWords;
      for (size_t i = 0; i < windows; ++i) mapped += array.IsMapped(i) ? 1 : 0;
    }
    return mapped;
  }

  std::vector<SharedArray> arrays_;
};

TEST_F(WindowCacheTest, KeepsEveryWordThatWasWritten) {
  AddArray(20);
  AddArray(20);
  WindowCache cache(4);
  std::mt19937 random(1);
  std::vector<uint64_t> expected(2 * 20 * kWords);
  for (int step = 0; step < 5000; ++step) {
    const size_t array = random() % 2, first = random() % (20 * kWords - 10);
    ASSERT_TRUE(Map(cache, array, first, 10));
    const std::span<uint64_t> words = Words(array, first, 10);
    for (size_t i = 0; i < words.size(); ++i) {
      uint64_t& kept = expected[array * 20 * kWords + first + i];
      ASSERT_EQ(words[i], kept);
      words[i] = kept = random();
    }
    ASSERT_LE(Mapped(), 4u);
  }
  EXPECT_EQ(Mapped(), 4u);
}

TEST_F(WindowCacheTest, KeepsWindowsThatAreUsedOften) {
  AddArray(100);
  WindowCache cache(4);
  ASSERT_TRUE(Map(cache, 0, 0));
  for (size_t window = 1; window < 100; ++window) {
    ASSERT_TRUE(Map(cache, 0, window * kWords));
    EXPECT_TRUE(arrays_[0].IsMapped(0)) << window;
    ASSERT_TRUE(Map(cache, 0, 0));
  }
}

TEST_F(WindowCacheTest, APartOfTwoWindowsIsMappedAsAWhole) {
  AddArray(50);
  WindowCache cache(3);
  for (size_t window = 1; window < 50; ++window) {
    ASSERT_TRUE(Map(cache, 0, window * kWords - 1, 2));
    EXPECT_TRUE(arrays_[0].IsMapped(window - 1) && arrays_[0].IsMapped(window));
  }
}

TEST_F(WindowCacheTest, WorksAfterMmapHasFailed) {
  AddArray(8);
  AddArray(8, O_RDONLY);  // it cannot be mapped for writing
  WindowCache cache(3);
  for (int round = 0; round < 3; ++round) {
    for (size_t window = 0; window < 8; ++window) {
      ASSERT_TRUE(Map(cache, 0, window * kWords));
      Words(0, window * kWords, 1)[0] = window;
      EXPECT_FALSE(Map(cache, 1, window * kWords));
      EXPECT_EQ(Words(1, window * kWords, 1)[0], 0u);
    }
  }
  EXPECT_LE(Mapped(), 3u);
}

// Every mmap fails, also the one that would unmap a window: as at the limit of mappings per process.
TEST_F(WindowCacheTest, KeepsItsWindowsIfEveryMmapFails) {
  AddArray(8);
  WindowCache cache(3);
  for (size_t window = 0; window < 3; ++window) {
    ASSERT_TRUE(Map(cache, 0, window * kWords));
    Words(0, window * kWords, 1)[0] = window + 1;
  }
  for (int round = 0; round < 5; ++round) {
    rlimit before{};
    ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
    const rlimit nothing{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &nothing), 0);
    const bool full = Map(cache, 0, 5 * kWords), alone = arrays_[0].MapWindow(6);
    ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
    EXPECT_FALSE(full || alone);
  }
  EXPECT_EQ(Mapped(), 3u);
  for (size_t window = 0; window < 3; ++window) {
    EXPECT_EQ(Words(0, window * kWords, 1)[0], window + 1);
    Words(0, window * kWords, 1)[0] = 0;  // it is still writable
  }
  EXPECT_EQ(Words(0, 5 * kWords, 1)[0], 0u);
  EXPECT_EQ(Words(0, 6 * kWords, 1)[0], 0u);
  ASSERT_TRUE(Map(cache, 0, 5 * kWords));
  EXPECT_EQ(Mapped(), 3u);
}

}  // namespace
}  // namespace tributary
