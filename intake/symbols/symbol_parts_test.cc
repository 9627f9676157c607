#include "intake/symbols/symbol_parts.h"

#include <gtest/gtest.h>

namespace tributary::intake {
namespace {

ExecutableId Id(std::string_view bytes) { return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId, bytes); }

SymbolParts::Part PartOf(size_t bytes, uint64_t key = 7) {
  return {.total_bytes = 100'000, .raw_bytes = 900'000, .key = key, .bytes = std::string(bytes, 'x')};
}

class SymbolPartsTest : public testing::Test {
 protected:
  uint64_t Count(const char* name) { return metrics_.AddCounter(name, "").value(); }
  uint64_t evicted() { return Count("tributary_intake_symbol_parts_evicted_total"); }

  Metrics metrics_;
  SymbolParts parts_{{.bytes_max = 10'000, .parts_max = 3}, metrics_};
};

TEST_F(SymbolPartsTest, OfferedPartIsTakenOnce) {
  EXPECT_EQ(parts_.Offer(Id("a")), SymbolPart());
  parts_.Keep(Id("a"), PartOf(1'000));
  const SymbolPart offer = parts_.Offer(Id("a"));
  EXPECT_EQ(offer, (SymbolPart{1'000, 100'000, 900'000, 7}));
  SymbolPart other = offer;
  ++other.offset;
  EXPECT_FALSE(parts_.Take(Id("a"), other));
  auto part = parts_.Take(Id("a"), offer);
  ASSERT_TRUE(part);
  EXPECT_EQ(part->bytes, std::string(1'000, 'x'));
  EXPECT_FALSE(parts_.Take(Id("a"), offer));
  EXPECT_EQ(parts_.bytes(), 0u);
}

TEST_F(SymbolPartsTest, DropsPartsThatCannotBeContinued) {
  parts_.Keep(Id("a"), PartOf(1'000, /*key=*/0));
  parts_.Keep(Id("a"), PartOf(0));
  parts_.Keep(Id("a"), PartOf(100'000));
  EXPECT_EQ(parts_.Offer(Id("a")), SymbolPart());
  EXPECT_EQ(parts_.bytes(), 0u);
}

TEST_F(SymbolPartsTest, KeepsTheLongerPartOfATable) {
  parts_.Keep(Id("a"), PartOf(1'000));
  parts_.Keep(Id("a"), PartOf(900));
  EXPECT_EQ(parts_.Offer(Id("a")).offset, 1'000u);
  parts_.Keep(Id("a"), PartOf(1'100));
  EXPECT_EQ(parts_.Offer(Id("a")).offset, 1'100u);
  parts_.Keep(Id("a"), PartOf(10, /*key=*/8));
  EXPECT_EQ(parts_.Offer(Id("a")).key, 8u) << "of another table: the newer";
  parts_.Drop(Id("a"));
  EXPECT_EQ(parts_.Offer(Id("a")), SymbolPart());
  EXPECT_EQ(parts_.bytes(), 0u);
}

TEST_F(SymbolPartsTest, LimitsNumberAndBytes) {
  for (const char* id : {"a", "b", "c"}) parts_.Keep(Id(id), PartOf(1'000));
  parts_.Offer(Id("a"));
  parts_.Keep(Id("d"), PartOf(1'000));
  EXPECT_EQ(parts_.Offer(Id("b")), SymbolPart()) << "not used for longest";
  EXPECT_EQ(evicted(), 1u);
  parts_.Keep(Id("e"), PartOf(8'500));
  EXPECT_LE(parts_.bytes(), 10'000u);
  EXPECT_EQ(parts_.Offer(Id("e")).offset, 8'500u);
  parts_.Keep(Id("f"), PartOf(10'001));
  EXPECT_EQ(parts_.bytes(), 0u) << "what is larger than all room is not kept either";
  EXPECT_EQ(Count("tributary_intake_symbol_parts_kept_total"), 6u);
  EXPECT_EQ(metrics_.AddGauge("tributary_intake_symbol_part_bytes", "").value(), 0);
}

}  // namespace
}  // namespace tributary::intake
