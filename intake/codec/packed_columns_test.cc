#include "intake/codec/packed_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/varint.h"

namespace tributary::intake {
namespace {

using Layout = ColumnPacking::Layout;

std::string Numbers(std::initializer_list<uint64_t> values) {
  std::string out;
  for (uint64_t value : values) AppendVarint(out, value);
  return out;
}

// One column of each kind.
const std::vector<ColumnPacking> kPackings = {{},
                                              {},
                                              {Layout::kNumbers, NumberKind::kSmall},
                                              {Layout::kNumbers, NumberKind::kWide},
                                              {Layout::kNumbers, NumberKind::kExact},
                                              {Layout::kAfter, NumberKind::kSmall},
                                              {Layout::kRecords, NumberKind::kWide, 3}};

std::vector<std::string> Unpacked(std::string_view packed, size_t bytes_max = 1 << 20) {
  UnpackedColumns out;
  EXPECT_TRUE(UnpackColumns(kPackings, packed, bytes_max, &out));
  return out.columns;
}

TEST(RangeCoder, GivesBackEveryDecision) {
  std::mt19937_64 random(1);
  for (unsigned rarely : {2, 10, 1'000, 1'000'000}) {
    std::vector<bool> decisions(20'000);
    for (auto&& decision : decisions) decision = random() % rarely == 0;
    RangeEncoder encoder;
    BitModel model;
    for (bool decision : decisions) {
      encoder.Put(model, decision);
      encoder.PutEven(decision ? 0xffff : 0, 16);
    }
    const std::string bytes = std::move(encoder).Finish();
    RangeDecoder decoder(bytes);
    BitModel same;
    for (bool decision : decisions) {
      ASSERT_EQ(decoder.Get(same), decision);
      ASSERT_EQ(decoder.GetEven(16), decision ? 0xffffu : 0u);
    }
    EXPECT_TRUE(decoder.AtEnd());
  }
}

TEST(RangeCoder, CarriesIntoBytesHeldBack) {
  // All even bits set: low stays just below a carry for as long as possible.
  for (unsigned count = 1; count < 200; ++count) {
    RangeEncoder encoder;
    BitModel model;
    for (unsigned i = 0; i < count; ++i) encoder.PutEven(0xffff, 16);
    encoder.Put(model, true);
    const std::string bytes = std::move(encoder).Finish();
    RangeDecoder decoder(bytes);
    BitModel same;
    for (unsigned i = 0; i < count; ++i) ASSERT_EQ(decoder.GetEven(16), 0xffffu);
    ASSERT_TRUE(decoder.Get(same));
  }
}

TEST(RangeCoder, ExpectedDecisionsCostNextToNothing) {
  RangeEncoder encoder;
  BitModel model;
  for (int i = 0; i < 10'000; ++i) encoder.Put(model, false);
  EXPECT_LE(std::move(encoder).Finish().size(), 8u);
}

TEST(PackedColumns, GiveBackEachKindOfColumn) {
  const std::vector<std::string> columns = {"",
                                            std::string("any\x00 bytes\xff\xfe", 12),
                                            Numbers({0, 1, 2, 3, 15, 16, UINT64_MAX, 0, 0}),
                                            Numbers({0x401000, 5, UINT64_MAX, 1ull << 63, (1ull << 63) - 1}),
                                            Numbers({500, 500, 499, 501, 4095, 4096, 4097, UINT64_MAX}),
                                            Numbers({0, 1, 0, 2, 3, 0, 15, 16, 99, 1}),
                                            Numbers({1, 1000, 1'000'000, 2, 1001, 1'000'001, 3})};
  EXPECT_EQ(Unpacked(PackColumns(kPackings, columns)), columns);
  EXPECT_EQ(Unpacked(PackColumns(kPackings, std::vector<std::string>(kPackings.size()))),
            std::vector<std::string>(kPackings.size()));
}

TEST(PackedColumns, GiveBackRandomColumns) {
  std::mt19937_64 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> columns(kPackings.size());
    for (size_t i = 1; i < columns.size(); ++i) {
      for (uint64_t n = random() % 300; n > 0; --n) {
        if (kPackings[i].layout == Layout::kBytes) {
          columns[i].push_back(static_cast<char>(random()));
        } else {
          AppendVarint(columns[i], random() >> random() % 64);
        }
      }
    }
    ASSERT_EQ(Unpacked(PackColumns(kPackings, columns)), columns);
  }
}

TEST(PackedColumns, TakeFewerBytesThanTheNumbers) {
  std::mt19937_64 random(3);
  std::vector<std::string> columns(kPackings.size());
  for (int i = 0; i < 2'000; ++i) AppendVarint(columns[2], random() % 20 == 0 ? 3 : 0);
  EXPECT_LT(PackColumns(kPackings, columns).size(), 110u);  // 0.29 bits each, where a varint takes 8
}

TEST(PackedColumns, StayWithinTheirBoundsForAnyBytes) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 500; ++round) {
    std::string bytes(random() % 64, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    UnpackedColumns out;
    if (!UnpackColumns(kPackings, bytes, 10'000, &out)) continue;
    size_t total = 0;
    for (const std::string& column : out.columns) total += column.size();
    EXPECT_LE(total, 10'000u);
  }
}

TEST(PackedColumns, RefuseTooManyAndLeftOverBytes) {
  std::vector<std::string> columns(kPackings.size());
  for (int i = 0; i < 5'000; ++i) AppendVarint(columns[3], 300);
  const std::string packed = PackColumns(kPackings, columns);
  UnpackedColumns out;
  EXPECT_TRUE(UnpackColumns(kPackings, packed, 10'000, &out));
  EXPECT_FALSE(UnpackColumns(kPackings, packed, 9'999, &out));  // the numbers fit, their bytes do not
  EXPECT_FALSE(UnpackColumns(kPackings, packed, 4'999, &out));
  EXPECT_FALSE(UnpackColumns(kPackings, packed + "more", 10'000, &out));
}

TEST(PackedColumns, SkipColumnsOfALaterRelease) {
  std::vector<ColumnPacking> later = kPackings;
  later.push_back({Layout::kNumbers, NumberKind::kSmall});
  std::vector<std::string> columns(later.size());
  columns[2] = Numbers({1, 2});
  columns.back() = Numbers({3, 4});
  UnpackedColumns out;
  ASSERT_TRUE(UnpackColumns(kPackings, PackColumns(later, columns), 1'000, &out));
  EXPECT_EQ(out.unknown, 1u);
  EXPECT_EQ(out.columns[2], columns[2]);
  // And columns of an earlier release: columns that it does not know are empty.
  columns.pop_back();
  ASSERT_TRUE(UnpackColumns(later, PackColumns(kPackings, columns), 1'000, &out));
  EXPECT_EQ(out.unknown, 0u);
  EXPECT_EQ(out.columns.back(), "");
}

}  // namespace
}  // namespace tributary::intake
