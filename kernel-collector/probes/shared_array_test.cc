#include "kernel-collector/probes/shared_array.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

namespace tributary {
namespace {

constexpr size_t kWindow = SharedArray::kWindowBytes;
constexpr size_t kWords = kWindow / sizeof(uint64_t);

// A memory file instead of a BPF array: mmap works in the same way.
Fd MakeFile(size_t bytes) {
  Fd file(memfd_create("array", MFD_CLOEXEC));
  EXPECT_EQ(ftruncate(file.get(), static_cast<off_t>(bytes)), 0);
  return file;
}

uint64_t WordAt(int file, size_t index) {
  uint64_t word = 0;
  EXPECT_EQ(pread(file, &word, sizeof(word), static_cast<off_t>(index * sizeof(word))), ssize_t{sizeof(word)});
  return word;
}

// Returns how many bytes of the array come from the file, and not from reserved memory.
size_t MappedBytes(const SharedArray& array) {
  const auto words = array.As<uint64_t>();
  size_t mapped = 0;
  FILE* maps = fopen("/proc/self/maps", "re");
  unsigned long begin = 0, end = 0;
  char line[512];
  while (fgets(line, sizeof(line), maps) != nullptr) {
    if (sscanf(line, "%lx-%lx", &begin, &end) != 2 || std::string(line).find("/memfd:array") == std::string::npos)
      continue;
    const auto from = reinterpret_cast<uintptr_t>(words.data());
    if (begin >= from && begin < from + words.size_bytes()) mapped += end - begin;
  }
  fclose(maps);
  return mapped;
}

TEST(SharedArray, WritesOnlyToWindowsThatWereMadeWritable) {
  const Fd file = MakeFile(4 * kWindow);
  auto array = SharedArray::Reserve(Fd(dup(file.get())), 4 * kWindow, "array");
  ASSERT_TRUE(array.ok()) << array.status();
  const std::span<uint64_t> words = array->As<uint64_t>();
  ASSERT_EQ(words.size(), 4 * kWords);
  EXPECT_EQ(MappedBytes(*array), 0u);
  for (const size_t index : {size_t{0}, kWords, 4 * kWords - 1}) EXPECT_EQ(words[index], 0u);

  // The last word of window 1 and the first one of window 2.
  ASSERT_TRUE(array->MakeWritable(std::as_bytes(words.subspan(2 * kWords - 1, 2))));
  EXPECT_EQ(MappedBytes(*array), 2 * kWindow);
  words[2 * kWords - 1] = 7;
  words[2 * kWords] = 8;
  EXPECT_EQ(WordAt(file.get(), 2 * kWords - 1), 7u);
  EXPECT_EQ(WordAt(file.get(), 2 * kWords), 8u);
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[3 * kWords], 0u);

  ASSERT_TRUE(array->MakeWritable(std::as_bytes(words.subspan(kWords, 10))));  // again
  EXPECT_EQ(MappedBytes(*array), 2 * kWindow);
  EXPECT_EQ(words[2 * kWords - 1], 7u);
}

TEST(SharedArray, MapsAsAWholeAndAnEndThatIsNoWholeWindow) {
  const Fd file = MakeFile(kWindow + 16);
  auto array = SharedArray::Map(Fd(dup(file.get())), kWindow + 16, "array");
  ASSERT_TRUE(array.ok()) << array.status();
  const SharedArray moved = *std::move(array);
  moved.As<uint64_t>().back() = 9;
  EXPECT_EQ(WordAt(file.get(), kWords + 1), 9u);
}

TEST(SharedArray, StaysReadableIfTheSystemRefusesAWindow) {
  // A descriptor for reading only cannot be mapped for writing.
  const Fd file = MakeFile(2 * kWindow);
  const std::string path = "/proc/self/fd/" + std::to_string(file.get());
  auto array = SharedArray::Reserve(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), 2 * kWindow, "array");
  ASSERT_TRUE(array.ok()) << array.status();
  const std::span<uint64_t> words = array->As<uint64_t>();
  EXPECT_FALSE(array->MakeWritable(std::as_bytes(words)));
  EXPECT_EQ(words[0], 0u);
  EXPECT_EQ(words[kWords], 0u);
  EXPECT_FALSE(SharedArray::Map(Fd(open(path.c_str(), O_RDONLY | O_CLOEXEC)), 2 * kWindow, "array").ok());
}

TEST(SharedArray, Contains) {
  auto array = SharedArray::Reserve(MakeFile(kWindow), kWindow, "array");
  ASSERT_TRUE(array.ok());
  const auto bytes = std::as_bytes(array->As<uint64_t>());
  EXPECT_TRUE(array->Contains(bytes));
  EXPECT_TRUE(array->Contains(bytes.last(1)));
  EXPECT_FALSE(array->Contains({bytes.data(), bytes.size() + 1}));
  const std::byte other{};
  EXPECT_FALSE(array->Contains({&other, 1}));
}

}  // namespace
}  // namespace tributary
