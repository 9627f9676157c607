#include "kernel-collector/direct/name_tables.h"

#include <gtest/gtest.h>

#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

class NameTablesTest : public testing::Test {
 protected:
  void Add(NameTables& tables, std::string_view id, size_t padding = 0) {
    tables.Add(TestId(id), TableFor(TestId(id), padding));
  }
  uint64_t Counted(const char* name) { return metrics_.AddCounter(name, "").value(); }

  FakeClock clock_;
  Metrics metrics_;
};

TEST_F(NameTablesTest, FindsTablesThatWereAdded) {
  NameTables tables(1 << 20, clock_, metrics_);
  EXPECT_TRUE(tables.IsWanted(TestId("a")));
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  Add(tables, "a");
  ASSERT_NE(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(tables.Find(TestId("a"))->Find(0x1010)->name, "_Z4mainv");
  EXPECT_FALSE(tables.IsWanted(TestId("a")));
  EXPECT_EQ(tables.bytes(), tables.Find(TestId("a"))->bytes().size());
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_total"), 1u);
}

TEST_F(NameTablesTest, DropsTheTablesThatWereNotUsedForTheLongestTime) {
  NameTables tables(25'000, clock_, metrics_);
  Add(tables, "a", 10'000);
  Add(tables, "b", 10'000);
  const auto in_use = tables.Find(TestId("a"));
  Add(tables, "c", 10'000);
  EXPECT_NE(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(tables.Find(TestId("b")), nullptr);
  EXPECT_FALSE(tables.IsWanted(TestId("b")));  // it would be dropped and made again for ever
  clock_.Advance(RequestPauses::kDroppedNs[0]);
  EXPECT_TRUE(tables.IsWanted(TestId("b")));
  EXPECT_NE(tables.Find(TestId("c")), nullptr);
  EXPECT_LE(tables.bytes(), 25'000u);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_evicted_total"), 1u);
  Add(tables, "d", 10'000);
  Add(tables, "e", 10'000);
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(in_use->Find(0x2000)->name, "helper");  // as long as it is used
}

TEST_F(NameTablesTest, RefusesATableThatIsTooLarge) {
  NameTables tables(5'000, clock_, metrics_);
  Add(tables, "small");
  Add(tables, "large", 10'000);
  EXPECT_EQ(tables.Find(TestId("large")), nullptr);
  EXPECT_FALSE(tables.IsWanted(TestId("large")));
  EXPECT_NE(tables.Find(TestId("small")), nullptr);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_refused_total"), 1u);
}

// Three tables are in use, and two have room: each is made again only rarely.
TEST_F(NameTablesTest, TablesThatDisplaceEachOtherAreNotMadeAgainAllTheTime) {
  NameTables tables(25'000, clock_, metrics_);
  for (int second = 0; second < 7200; ++second) {
    for (const char* id : {"a", "b", "c"}) {
      if (tables.Find(TestId(id)) == nullptr && tables.IsWanted(TestId(id))) Add(tables, id, 10'000);
    }
    clock_.Advance(kNsPerSecond);
  }
  EXPECT_LE(Counted("tributary_direct_symbol_tables_total"), 3 * 7200u / 600 + 10);
}

TEST_F(NameTablesTest, RefusesDamagedTables) {
  NameTables tables(1 << 20, clock_, metrics_);
  tables.Add(TestId("a"), PackedTable(std::string("no zstd"), 100));
  tables.Add(TestId("b"), PackedTable::Of("no table"));
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(tables.Find(TestId("b")), nullptr);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_refused_total"), 2u);
}

TEST_F(NameTablesTest, DoesNotWantWhatIsAbsentForSomeTime) {
  NameTables tables(1 << 20, clock_, metrics_);
  tables.AddAbsent(TestId("a"), absl::StatusCode::kNotFound);
  EXPECT_FALSE(tables.IsWanted(TestId("a")));
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  clock_.Advance(RequestPauses::kFailureMinNs);
  EXPECT_TRUE(tables.IsWanted(TestId("a")));
  Add(tables, "a");
  EXPECT_NE(tables.Find(TestId("a")), nullptr);
}

}  // namespace
}  // namespace tributary
