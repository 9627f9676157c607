#include "kernel-collector/direct/name_tables.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "base/process_status_testing.h"
#include "base/zstd.h"
#include "kernel-collector/direct/direct_testing.h"
#include "symbols/flat_layout.h"
#include "symbols/symbol_builder.h"

namespace tributary {
namespace {

const uint64_t kPage = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
// Room for four tables of 10,000 bytes and some more.
const uint64_t kFourTables = 4 * ((10'500 + kPage - 1) / kPage * kPage + NameTables::kTableOverhead);

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
  EXPECT_EQ(tables.bytes(), kPage + NameTables::kTableOverhead);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_total"), 1u);
}

TEST_F(NameTablesTest, DropsTheTablesThatWereNotUsedForTheLongestTime) {
  NameTables tables(kFourTables, clock_, metrics_);
  for (const char* id : {"a", "b", "c", "d"}) Add(tables, id, 10'000);
  EXPECT_EQ(tables.size(), 4u);
  const auto in_use = tables.Find(TestId("a"));
  Add(tables, "e", 10'000);
  EXPECT_NE(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(tables.Find(TestId("b")), nullptr);
  EXPECT_FALSE(tables.IsWanted(TestId("b")));  // it would be dropped and made again for ever
  clock_.Advance(RequestPauses::kDroppedNs[0]);
  EXPECT_TRUE(tables.IsWanted(TestId("b")));
  EXPECT_NE(tables.Find(TestId("e")), nullptr);
  EXPECT_LE(tables.bytes(), kFourTables);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_evicted_total"), 1u);
  for (const char* id : {"f", "g", "h", "i"}) Add(tables, id, 10'000);
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  EXPECT_EQ(in_use->Find(0x2000)->name, "helper");  // as long as it is used
}

// A small table takes a page and some objects, so many small tables are not free.
TEST_F(NameTablesTest, CountsPagesAndLimitsTheNumberOfTables) {
  NameTables tables(uint64_t{1} << 30, clock_, metrics_);
  for (size_t i = 0; i < NameTables::kTablesMax + 2; ++i) Add(tables, "id " + std::to_string(i));
  EXPECT_EQ(tables.size(), NameTables::kTablesMax);
  EXPECT_EQ(tables.bytes(), NameTables::kTablesMax * (kPage + NameTables::kTableOverhead));
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_evicted_total"), 2u);
  EXPECT_EQ(tables.Find(TestId("id 1")), nullptr);
  EXPECT_NE(tables.Find(TestId("id 2")), nullptr);
}

TEST_F(NameTablesTest, RefusesATableThatIsTooLarge) {
  NameTables tables(kFourTables, clock_, metrics_);
  Add(tables, "small", 10'000);
  Add(tables, "large", 10'500 + kPage);  // more than a quarter
  EXPECT_EQ(tables.Find(TestId("large")), nullptr);
  EXPECT_FALSE(tables.IsWanted(TestId("large")));
  EXPECT_NE(tables.Find(TestId("small")), nullptr);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_refused_total"), 1u);
}

// The symbol maker sends tables in this form.
TEST_F(NameTablesTest, UsesFlatTablesAsTheyAre) {
  NameTables tables(16 << 20, clock_, metrics_);
  const auto table =
      BuildSymbolTable(TestId("a"), SymbolSource::kSymtab, {{.address = 0x1000, .size = 0x100, .name = "_Z4mainv"}});
  const std::string_view bytes = table->bytes();
  tables.Add(TestId("a"), PackedTable(ZstdCompress(bytes), bytes.size()));
  ASSERT_NE(tables.Find(TestId("a")), nullptr);
  EXPECT_TRUE(tables.Find(TestId("a"))->bytes() == bytes);
  EXPECT_EQ(tables.Find(TestId("a"))->Find(0x1010)->name, "_Z4mainv");
  tables.Add(TestId("b"), PackedTable(ZstdCompress(bytes.substr(0, 200)), 200));
  EXPECT_EQ(tables.Find(TestId("b")), nullptr);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_refused_total"), 1u);
}

// A compromised symbol maker could otherwise make each string as long as a name may be.
TEST_F(NameTablesTest, RefusesFlatTablesWhoseStringsOverlap) {
  NameTables tables(16 << 20, clock_, metrics_);
  const auto table = BuildSymbolTable(TestId("a"), SymbolSource::kSymtab,
                                      {{.address = 0x1000, .size = 0x100, .name = "_Z4mainv"},
                                       {.address = 0x2000, .size = 0x100, .name = "helper"},
                                       {.address = 0x3000, .size = 0x100, .name = "other"}});
  std::string bytes(table->bytes());
  flat::Header header;
  memcpy(&header, bytes.data(), sizeof(header));
  const flat::Section& section = header.sections[flat::kStringOffsets];
  std::vector<uint32_t> offsets(section.count);
  const auto size = static_cast<uint32_t>(header.sections[flat::kStringBytes].count);
  for (size_t i = 0; i < offsets.size(); ++i) offsets[i] = i % 2 == 0 ? 0 : size;
  offsets.back() = size;
  memcpy(bytes.data() + section.offset, offsets.data(), offsets.size() * sizeof(uint32_t));
  tables.Add(TestId("a"), PackedTable(ZstdCompress(bytes), bytes.size()));
  EXPECT_EQ(tables.Find(TestId("a")), nullptr);
  EXPECT_FALSE(tables.IsWanted(TestId("a")));
  EXPECT_EQ(tables.bytes(), 0u);
  EXPECT_EQ(Counted("tributary_direct_symbol_tables_refused_total"), 1u);
}

TEST_F(NameTablesTest, LookUpsKeepOnlySomePagesResident) {
  constexpr size_t kTables = 2000, kBytes = 10'000;
  NameTables tables(uint64_t{64} << 20, clock_, metrics_);
  for (size_t i = 0; i < kTables; ++i) Add(tables, "id " + std::to_string(i), kBytes);
  tables.EndLookups();
  const int64_t before = StatusKib("RssShmem:");
  int64_t most = 0;
  uint64_t sum = 0;
  for (size_t i = 0; i < kTables; ++i) {
    const std::string_view bytes = tables.Find(TestId("id " + std::to_string(i)))->bytes();
    sum = std::accumulate(bytes.begin(), bytes.end(), sum);
    tables.LimitPages();
    most = std::max(most, StatusKib("RssShmem:"));
  }
  EXPECT_NE(sum, 0u);
  // A table, and the kernel's inexact count, in addition.
  EXPECT_LT(most - before, static_cast<int64_t>(NameTables::kResidentBytesMax + 2 * kBytes) / 1024 + 1024);
  EXPECT_GT(kTables * kBytes, 4 * NameTables::kResidentBytesMax);
}

TEST_F(NameTablesTest, ReleasedPagesAreNotResidentUntilTheyAreReadAgain) {
  constexpr size_t kTables = 1000, kBytes = 10'000;
  NameTables tables(uint64_t{64} << 20, clock_, metrics_);
  for (size_t i = 0; i < kTables; ++i) Add(tables, "id " + std::to_string(i), kBytes);
  const auto read_all = [&tables] {
    uint64_t sum = 0;
    for (size_t i = 0; i < kTables; ++i) {
      const std::string_view bytes = tables.Find(TestId("id " + std::to_string(i)))->bytes();
      sum = std::accumulate(bytes.begin(), bytes.end(), sum);
    }
    return sum;
  };
  const uint64_t sum = read_all();
  // The kernel's count of resident pages is a little inexact.
  const auto half = static_cast<int64_t>(kTables * kBytes / 1024 / 2);
  EXPECT_GT(StatusKib("RssShmem:"), half);
  tables.EndLookups();
  EXPECT_LT(StatusKib("RssShmem:"), half);
  EXPECT_EQ(read_all(), sum);
}

// Five tables are in use, and four have room: each is made again only rarely.
TEST_F(NameTablesTest, TablesThatDisplaceEachOtherAreNotMadeAgainAllTheTime) {
  NameTables tables(kFourTables, clock_, metrics_);
  for (int second = 0; second < 7200; ++second) {
    for (const char* id : {"a", "b", "c", "d", "e"}) {
      if (tables.Find(TestId(id)) == nullptr && tables.IsWanted(TestId(id))) Add(tables, id, 10'000);
    }
    clock_.Advance(kNsPerSecond);
  }
  EXPECT_LE(Counted("tributary_direct_symbol_tables_total"), 5 * 7200u / 600 + 20);
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
