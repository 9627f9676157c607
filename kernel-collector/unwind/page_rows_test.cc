#include "kernel-collector/unwind/page_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "kernel-collector/probes/fake_unwind_maps_testing.h"

namespace tributary {
namespace {

uint64_t SpRule(int32_t offset) { return TRIB_RULE_SP | uint64_t{static_cast<uint32_t>(offset)} << 8; }

class PageRowsTest : public testing::Test {
 protected:
  PageRowsTest() { pool.AddChunk(*maps.AddChunk()); }

  std::span<uint64_t> Publish(const PageRows& unit) {
    auto entries = maps.pages().subspan(10, unit.pages.size());
    EXPECT_TRUE(PublishPages(unit, unit.rows.empty() ? 0 : *pool.Allocate(static_cast<uint32_t>(unit.rows.size())),
                             pool, entries));
    return entries;
  }

  FakeUnwindMaps maps;
  Metrics metrics;
  RuleDictionary rules{maps, metrics};
  RowPool pool{maps};
};

TEST_F(PageRowsTest, EveryPageBeginsWithARowAndOneRuleNeedsNone) {
  PageRows unit = *CutToPages(std::vector<UnwindRow>{{0, SpRule(8)}, {16, SpRule(16)}, {0x2800, SpRule(24)}}, 4, rules);
  ASSERT_EQ(unit.pages.size(), 4u);
  EXPECT_EQ(unit.pages[0].count, 2);
  EXPECT_EQ(unit.pages[1].count, 0);
  EXPECT_EQ(unit.pages[2].count, 2);
  EXPECT_EQ(unit.pages[3].count, 0);
  EXPECT_EQ(unit.rows.size(), 4u);
  auto entries = Publish(unit);
  EXPECT_EQ(maps.Rule(entries[0], 15), SpRule(8));
  EXPECT_EQ(maps.Rule(entries[0], 16), SpRule(16));
  EXPECT_EQ(maps.Rule(entries[1], 0), SpRule(16));
  EXPECT_EQ(maps.Rule(entries[2], 0x7ff), SpRule(16));
  EXPECT_EQ(maps.Rule(entries[2], 0x800), SpRule(24));
  EXPECT_EQ(maps.Rule(entries[3], 0xfff), SpRule(24));
  WithdrawPages(entries);
  EXPECT_EQ(FindRule(entries[0], 0, pool, rules), std::nullopt);
}

TEST_F(PageRowsTest, NoRowsMeansNoRuleAndDisorderIsLeftOut) {
  PageRows none = *CutToPages({}, 2, rules);
  EXPECT_TRUE(none.rows.empty());
  EXPECT_EQ(maps.Rule(Publish(none)[1], 7), uint64_t{TRIB_RULE_NONE});
  PageRows odd = *CutToPages(std::vector<UnwindRow>{{8, SpRule(8)}, {4, SpRule(16)}, {0x90000, SpRule(24)}}, 1, rules);
  auto entries = Publish(odd);
  EXPECT_EQ(maps.Rule(entries[0], 0), uint64_t{TRIB_RULE_NONE});
  EXPECT_EQ(maps.Rule(entries[0], 4), uint64_t{TRIB_RULE_NONE});
  EXPECT_EQ(maps.Rule(entries[0], 0xfff), SpRule(8));
}

TEST_F(PageRowsTest, ARowAByteFits) {
  std::vector<UnwindRow> rows;
  for (uint32_t i = 0; i < 2 * TRIB_PAGE_BYTES; ++i) rows.push_back({i, SpRule(8 + static_cast<int32_t>(i % 7))});
  auto entries = Publish(*CutToPages(rows, 2, rules));
  for (const UnwindRow& row : rows) {
    ASSERT_EQ(FindRule(entries[row.offset >> 12], row.offset & 0xfff, pool, rules), row.rule);
  }
}

TEST_F(PageRowsTest, FindsTheRuleOfTheRowsAtEveryByte) {
  for (uint32_t seed = 1; seed <= 10; ++seed) {
    std::mt19937 random(seed);
    constexpr uint32_t kPages = 5;
    std::vector<UnwindRow> rows = {{0, SpRule(8)}};
    while (true) {
      uint32_t offset = rows.back().offset + 1 + random() % (seed * 200);
      if (offset >= kPages * TRIB_PAGE_BYTES) break;
      rows.push_back({offset, SpRule(static_cast<int32_t>(random() % 4) * 8)});
    }
    auto entries = Publish(*CutToPages(rows, kPages, rules));
    size_t at = 0;
    for (uint32_t offset = 0; offset < kPages * TRIB_PAGE_BYTES; ++offset) {
      if (at + 1 < rows.size() && rows[at + 1].offset <= offset) ++at;
      ASSERT_EQ(FindRule(entries[offset >> 12], offset & 0xfff, pool, rules), rows[at].rule) << offset;
      ASSERT_EQ(maps.Rule(entries[offset >> 12], offset & 0xfff), rows[at].rule) << offset;
    }
  }
}

TEST_F(PageRowsTest, AFullDictionaryGivesABadRule) {
  for (uint32_t i = 0; rules.size() < TRIB_RULES_MAX; ++i) {
    ASSERT_TRUE(rules.Number(SpRule(static_cast<int32_t>(i))));
  }
  EXPECT_EQ(rules.Rule(*rules.Number(TRIB_RULE_FP | 99ull << 32)), uint64_t{TRIB_RULE_BAD});
  EXPECT_EQ(rules.Rule(*rules.Number(SpRule(5))), SpRule(5));
  EXPECT_NE(metrics.PrometheusText().find("unwind_rules_refused_total 1"), std::string::npos);
}

TEST_F(PageRowsTest, WithoutMemoryForANewRuleThereAreNoPages) {
  const std::vector<UnwindRow> known = {{0, SpRule(8)}}, later = {{0, SpRule(8)}, {16, SpRule(16)}};
  const uint16_t number = *rules.Number(SpRule(8));
  maps.has_memory_for_rules = false;
  EXPECT_EQ(CutToPages(known, 1, rules)->pages[0].rule, number);
  EXPECT_FALSE(CutToPages(later, 1, rules));
  EXPECT_FALSE(CutToPages(std::vector<UnwindRow>{{0, SpRule(24)}}, 1, rules));
  EXPECT_EQ(rules.size(), 3u);
  EXPECT_NE(metrics.PrometheusText().find("unwind_rules_refused_total 0"), std::string::npos);
  maps.has_memory_for_rules = true;
  auto entries = Publish(*CutToPages(later, 1, rules));
  EXPECT_EQ(maps.Rule(entries[0], 16), SpRule(16));
}

TEST(RowPool, BlocksAreEvenAndWithinOneChunk) {
  FakeUnwindMaps maps;
  RowPool pool{maps};
  EXPECT_EQ(pool.Allocate(1), std::nullopt);
  pool.AddChunk(*maps.AddChunk());
  EXPECT_EQ(pool.Allocate(3), 0u);
  EXPECT_EQ(pool.Allocate(3), 4u);
  EXPECT_EQ(pool.Allocate(TRIB_CHUNK_ROWS), std::nullopt);
  pool.AddChunk(*maps.AddChunk());
  EXPECT_EQ(pool.Allocate(TRIB_CHUNK_ROWS), TRIB_CHUNK_ROWS);
  EXPECT_EQ(pool.rows_in_use(), TRIB_CHUNK_ROWS + 8);
  pool.Free(0, 3);
  EXPECT_EQ(pool.Allocate(4), 0u);
  ASSERT_TRUE(pool.Write(0, std::vector<uint32_t>{1, 2, 3}));
  for (uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(pool.Read(i), i + 1);
    EXPECT_EQ(maps.Row(i), i + 1);
  }
}

}  // namespace
}  // namespace tributary
