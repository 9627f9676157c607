#include "base/zstd_reader.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "base/zstd.h"

namespace tributary {
namespace {

// Passes `stored` in parts of this size.
absl::StatusOr<std::string> ReadAll(std::string_view stored, uint64_t raw_size, size_t part) {
  std::string raw;
  ZstdReader reader(raw_size);
  for (size_t at = 0; at < stored.size(); at += part) {
    RETURN_IF_ERROR(reader.Push(stored.substr(at, part), [&](std::string_view piece) {
      raw += piece;
      return absl::OkStatus();
    }));
  }
  RETURN_IF_ERROR(reader.Finish());
  return raw;
}

std::string SomeBytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t x = 1;
  for (char& byte : bytes) byte = static_cast<char>((x = x * 69069 + 1) >> 29);
  return bytes;
}

TEST(ZstdReader, ReadsInPartsOfAnySize) {
  for (const size_t size : {size_t{0}, size_t{1}, size_t{131'072}, size_t{1'000'000}}) {
    const std::string raw = SomeBytes(size), stored = ZstdCompress(raw);
    for (const size_t part : {size_t{7}, size_t{65'536}, stored.size()}) {
      const auto read = ReadAll(stored, size, part);
      ASSERT_TRUE(read.ok()) << read.status();
      EXPECT_TRUE(*read == raw) << size << " in parts of " << part;
    }
  }
}

TEST(ZstdReader, ReadsSeveralFrames) {
  EXPECT_EQ(*ReadAll(ZstdCompress("one ") + ZstdCompress("two"), 7, 3), "one two");
}

TEST(ZstdReader, RefusesDamagedDataAndOtherSizes) {
  const std::string raw = SomeBytes(300'000), stored = ZstdCompress(raw);
  EXPECT_FALSE(ReadAll("no zstd", 7, 100).ok());
  EXPECT_FALSE(ReadAll("", 0, 100).ok());
  EXPECT_FALSE(ReadAll(stored.substr(0, stored.size() - 1), raw.size(), 1000).ok());
  EXPECT_FALSE(ReadAll(stored + "x", raw.size(), 1000).ok());
  EXPECT_FALSE(ReadAll(stored, raw.size() - 1, 1000).ok());
  EXPECT_FALSE(ReadAll(stored, raw.size() + 1, 1000).ok());
}

TEST(ZstdReader, StopsAtAnErrorOfTheWriter) {
  ZstdReader reader(3);
  const absl::Status status = reader.Push(
      ZstdCompress("abc"), [](std::string_view) { return Error(absl::StatusCode::kResourceExhausted, "no space"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tributary
