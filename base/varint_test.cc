#include "base/varint.h"

#include <gtest/gtest.h>

#include <random>

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

TEST(Varint, SkipsWhatItWouldRead) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    const size_t count = random() % 40;
    for (size_t i = 0; i < count; ++i) AppendVarint(bytes, random() >> random() % 64);
    for (size_t skipped = 0; skipped <= count; ++skipped) {
      VarintReader read(bytes), skip(bytes);
      uint64_t value = 0;
      for (size_t i = 0; i < skipped; ++i) ASSERT_TRUE(read.Read(&value));
      ASSERT_TRUE(skip.Skip(skipped));
      EXPECT_EQ(skip.remaining(), read.remaining());
    }
    VarintReader reader(bytes);
    EXPECT_FALSE(reader.Skip(count + 1));
    EXPECT_FALSE(reader.ok());
  }
  EXPECT_FALSE(VarintReader(std::string(100, '\xff')).Skip(1));
}

TEST(Varint, ReadsManyAsOneByOne) {
  std::mt19937_64 random(4);
  for (int round = 0; round < 500; ++round) {
    std::string bytes;
    std::vector<uint64_t> numbers(random() % 40);
    const uint64_t shift = random() % 64;
    for (uint64_t& number : numbers) AppendVarint(bytes, number = random() >> (round % 2 == 0 ? shift : random() % 64));
    for (size_t count = 0; count <= numbers.size(); ++count) {
      VarintReader many(bytes), one(bytes);
      std::vector<uint64_t> read;
      ASSERT_TRUE(many.ReadMany(count, [&](uint64_t number) { read.push_back(number); }));
      EXPECT_EQ(read, std::vector<uint64_t>(numbers.begin(), numbers.begin() + static_cast<ptrdiff_t>(count)));
      uint64_t value = 0;
      for (size_t i = 0; i < count; ++i) ASSERT_TRUE(one.Read(&value));
      EXPECT_EQ(many.remaining(), one.remaining());
    }
    EXPECT_FALSE(VarintReader(bytes).ReadMany(numbers.size() + 1, [](uint64_t) {}));
  }
  EXPECT_FALSE(VarintReader(std::string(100, '\xff')).ReadMany(1, [](uint64_t) {}));
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
