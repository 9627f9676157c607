#include "base/zstd.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Zstd, RoundTrips) {
  for (size_t size : {0u, 1u, 100u, 100'000u}) {
    std::string raw(size, 'x');
    std::string stored = ZstdCompress(raw);
    auto back = ZstdDecompress(stored, raw.size());
    ASSERT_TRUE(back.ok()) << back.status();
    EXPECT_EQ(*back, raw);
  }
  EXPECT_LT(ZstdCompress(std::string(100'000, 'x')).size(), 100u);
}

TEST(Zstd, TakesSeveralFramesAsOne) {
  auto back = ZstdDecompress(ZstdCompress("ab") + ZstdCompress("cd"), 4);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, "abcd");
}

TEST(Zstd, RefusesAnotherRawSize) {
  std::string stored = ZstdCompress("twelve bytes");
  EXPECT_EQ(ZstdDecompress(stored, 11).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(ZstdDecompress(stored, 13).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(Zstd, RefusesTruncatedEmptyAndForeignBytes) {
  std::string stored = ZstdCompress(std::string(1000, 'a') + "tail");
  for (size_t size = 0; size < stored.size(); ++size) {
    EXPECT_FALSE(ZstdDecompress(std::string_view(stored).substr(0, size), 1004).ok()) << size;
  }
  EXPECT_FALSE(ZstdDecompress("", 0).ok());
  EXPECT_FALSE(ZstdDecompress("not a frame at all", 18).ok());
  EXPECT_FALSE(ZstdDecompress(stored + "x", 1004).ok());
}

TEST(Zstd, RefusesImpossibleSizes) { EXPECT_FALSE(ZstdDecompress(ZstdCompress("x"), size_t{1} << 50).ok()); }

}  // namespace
}  // namespace tributary
