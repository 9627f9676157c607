#include "reducer/sqlite/column_packing.h"

#include <gtest/gtest.h>

namespace tributary::store {
namespace {

TEST(ColumnPacking, PacksOnlyLargeColumnsThatShrink) {
  const std::string small(1000, 'a'), large(5000, 'a');
  EXPECT_EQ(PackColumns(small).raw_bytes, 0u);
  const PackedColumns packed = PackColumns(large);
  EXPECT_EQ(packed.raw_bytes, large.size());
  EXPECT_LT(packed.bytes.size(), 100u);
  EXPECT_EQ(UnpackColumns(packed.bytes, static_cast<int64_t>(packed.raw_bytes)).value(), large);
  EXPECT_TRUE(absl::IsDataLoss(UnpackColumns("no zstd", 100).status()));
  EXPECT_TRUE(absl::IsDataLoss(UnpackColumns(packed.bytes, int64_t{1} << 40).status()));
}

// The checksum is that of zlib's crc32.
TEST(ColumnPacking, FindsEachWrongBit) {
  const std::string columns("\x01\x02\x03", 3), stored("\x81\x02\x03\x9d\x9b\x89\xb4", 7);
  EXPECT_EQ(PackColumns(columns).bytes, stored);
  EXPECT_EQ(UnpackColumns(stored, 0).value(), columns);
  for (size_t i = 0; i < stored.size() * 8; ++i) {
    if (i == 7) continue;  // without this bit, it is a chunk of an earlier release
    std::string damaged = stored;
    damaged[i / 8] = static_cast<char>(damaged[i / 8] ^ 1 << i % 8);
    EXPECT_TRUE(absl::IsDataLoss(UnpackColumns(damaged, 0).status())) << i;
  }
}

TEST(ColumnPacking, UnpacksManyChunksIntoOneString) {
  std::string raw;
  for (const size_t size : {5000, 10, 1, 0, 900, 6000}) {
    const std::string columns(size, '\x02');
    const PackedColumns packed = PackColumns(columns);
    ASSERT_TRUE(UnpackColumns(packed.bytes, static_cast<int64_t>(packed.raw_bytes), &raw).ok());
    EXPECT_EQ(raw, columns);
  }
}

}  // namespace
}  // namespace tributary::store
