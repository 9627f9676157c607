#include "base/varint.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(Varint, RoundTripsEdges) {
  for (uint64_t value : {uint64_t{0}, uint64_t{127}, uint64_t{128}, uint64_t{1} << 35, UINT64_MAX}) {
    std::string bytes;
    AppendVarint(bytes, value);
    VarintReader reader(bytes);
    uint64_t read = 0;
    ASSERT_TRUE(reader.Read(&read));
    EXPECT_EQ(read, value);
    EXPECT_TRUE(reader.AtEnd());
  }
  for (int64_t value : {int64_t{0}, int64_t{-1}, INT64_MIN, INT64_MAX}) {
    std::string bytes;
    AppendSignedVarint(bytes, value);
    VarintReader reader(bytes);
    int64_t read = 0;
    ASSERT_TRUE(reader.ReadSigned(&read));
    EXPECT_EQ(read, value);
  }
}

TEST(Varint, RefusesTruncatedAndOverlong) {
  uint64_t value = 0;
  EXPECT_FALSE(VarintReader("\x80").Read(&value));
  EXPECT_FALSE(VarintReader(std::string(10, '\xff')).Read(&value));          // 70 bits
  EXPECT_FALSE(VarintReader(std::string(9, '\xff') + "\x02").Read(&value));  // bit 64
  EXPECT_TRUE(VarintReader(std::string(9, '\xff') + "\x01").Read(&value));
  EXPECT_EQ(value, UINT64_MAX);
}

TEST(Varint, StaysFailed) {
  VarintReader reader("\x80");
  uint64_t value = 0;
  EXPECT_FALSE(reader.Read(&value));
  EXPECT_FALSE(reader.Read(&value));
  EXPECT_FALSE(reader.ok());
}

}  // namespace
}  // namespace tributary
