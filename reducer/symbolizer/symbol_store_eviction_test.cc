#include <gtest/gtest.h>

#include "absl/algorithm/container.h"
#include "reducer/symbolizer/symbol_store_testing.h"

// Which tables are deleted when the directory is full.

namespace tributary {
namespace {

// The tables are small, and all of about the same size.
class SymbolStoreEvictionTest : public SymbolStoreTest {
 protected:
  // Opens the store with space for `tables` tables, and half a table more. A node's share has `share_min` tables or
  // more, and half a table.
  void OpenWithSpaceFor(int tables, int share_min = 0) {
    Open();
    PutTable(*Table(0));
    const uint64_t stored_bytes = List()[0].stored_bytes;
    ASSERT_TRUE(store_->Remove(Id(0)).ok());
    SymbolStore::Options options;
    options.disk_bytes_max = BytesForTables(tables + 0.5, stored_bytes);
    options.node_share_bytes_min = share_min == 0 ? 0 : BytesForTables(share_min + 0.5, stored_bytes) / 2;
    Open(options);
  }
  // `peer` empty: the node is a peer of its own.
  absl::StatusOr<SymbolStore::Kept> Put(uint8_t n, SymbolOrigin origin, const std::string& node = "",
                                        const std::string& peer = "") {
    clock_.Advance(kNsPerSecond);
    return store_->Put(Id(n), EncodeSymbolTable(*Table(n)), origin,
                       {.node_id = node, .version = "1.0", .peer_id = peer.empty() ? node : peer});
  }
  void PutAgreed(uint8_t n) {
    EXPECT_TRUE(Put(n, SymbolOrigin::kNode, "a").ok());
    EXPECT_TRUE(Put(n, SymbolOrigin::kNode, "b").ok());
    EXPECT_EQ(store_->Find(Id(n))->origin(), SymbolOrigin::kNodes);
  }
  bool Has(uint8_t n) { return store_->Find(Id(n)).ok(); }
  uint64_t Refused(const std::string& node) { return refusals_.Of(node)["symbols_full"]; }
};

TEST_F(SymbolStoreTest, DiskHoldsTheMostRecentlyUsed) {
  Open();
  PutTable(*Table(1));
  SymbolStore::Options options;
  options.disk_bytes_max = BytesForTables(2.5, List()[0].stored_bytes);
  Open(options);
  PutTable(*Table(2));
  clock_.Advance(2 * 3600 * kNsPerSecond);  // a use is recorded once an hour
  store_->Get(Id(1));
  clock_.Advance(kNsPerSecond);
  PutTable(*Table(3));
  EXPECT_EQ(Evictions("disk"), 1u);
  EXPECT_NE(store_->Get(Id(1)), nullptr);
  EXPECT_EQ(store_->Get(Id(2)), nullptr);
  EXPECT_NE(store_->Get(Id(3)), nullptr);
  EXPECT_EQ(List().size(), 2u);
}

TEST_F(SymbolStoreTest, EvictsFlatFormsBeforeTablesAndMakesThemAgain) {
  Open();
  PutTable(*Table(1, SymbolSource::kSymtab, 2000));
  PutTable(*Table(2, SymbolSource::kSymtab, 2000));
  SymbolStore::Options options;
  options.disk_bytes_max = 2 * (Table(1, SymbolSource::kSymtab, 2000)->bytes().size() + 100);
  Open(options);
  EXPECT_EQ(Evictions("flat"), 1u);
  EXPECT_EQ(Evictions("disk"), 0u);
  for (uint8_t n = 1; n <= 2; ++n) {
    ASSERT_NE(store_->Get(Id(n)), nullptr);
    EXPECT_EQ(store_->Get(Id(n))->function_count(), 2000u);
  }
}

TEST_F(SymbolStoreTest, RefusesATableLargerThanTheLimit) {
  SymbolStore::Options options;
  options.disk_bytes_max = 600;
  Open(options);
  EXPECT_EQ(store_->Put(Id(1), EncodeSymbolTable(*Table(1, SymbolSource::kSymtab, 2000)), SymbolOrigin::kNode)
                .status()
                .code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Uploads("no_room"), 1u);
  EXPECT_TRUE(List().empty());
}

TEST_F(SymbolStoreEvictionTest, NoNodePushesOutUploadsAndTablesOfTwoNodes) {
  OpenWithSpaceFor(2);
  ASSERT_TRUE(Put(1, SymbolOrigin::kUpload).ok());
  PutAgreed(2);
  for (uint8_t n = 3; n < 10; ++n) {
    EXPECT_EQ(Put(n, SymbolOrigin::kNode, "hostile").status().code(), absl::StatusCode::kResourceExhausted);
    EXPECT_FALSE(Has(n));
  }
  EXPECT_TRUE(Has(1));
  EXPECT_TRUE(Has(2));
  EXPECT_EQ(Evictions("disk"), 0u);
  EXPECT_EQ(Refused("hostile"), 7u);
  EXPECT_EQ(Uploads("no_room"), 7u);
}

TEST_F(SymbolStoreEvictionTest, EvictsTheLeastTrustedTablesFirst) {
  OpenWithSpaceFor(3);
  ASSERT_TRUE(Put(1, SymbolOrigin::kUpload).ok());
  PutAgreed(2);
  ASSERT_TRUE(Put(3, SymbolOrigin::kNode, "c").ok());
  ASSERT_TRUE(Put(4, SymbolOrigin::kDebuginfod).ok());
  EXPECT_FALSE(Has(3)) << "it is the newest, but one node alone sent it";
  ASSERT_TRUE(Put(5, SymbolOrigin::kUpload).ok());
  EXPECT_FALSE(Has(2));
  ASSERT_TRUE(Put(6, SymbolOrigin::kUpload).ok());
  EXPECT_FALSE(Has(4));
  ASSERT_TRUE(Put(7, SymbolOrigin::kUpload).ok());
  EXPECT_FALSE(Has(1)) << "of equal rank, the least recently used one";
  EXPECT_FALSE(absl::c_linear_search(std::vector<bool>{Has(5), Has(6), Has(7)}, false));
}

// Otherwise, the tables of old builds would fill the directory for ever.
TEST_F(SymbolStoreEvictionTest, TablesThatWereNotUsedForLongGoFirst) {
  OpenWithSpaceFor(2);
  ASSERT_TRUE(Put(1, SymbolOrigin::kUpload).ok());
  PutAgreed(2);
  clock_.Advance(6 * kNsPerDay);
  store_->Get(Id(1));
  EXPECT_FALSE(Put(3, SymbolOrigin::kNode, "c").ok());
  clock_.Advance(2 * kNsPerDay);
  EXPECT_TRUE(Put(3, SymbolOrigin::kNode, "c").ok());
  EXPECT_TRUE(Has(1));
  EXPECT_FALSE(Has(2));
}

TEST_F(SymbolStoreEvictionTest, ARefusedTableLeavesTheTableThatItWouldReplace) {
  OpenWithSpaceFor(2);
  ASSERT_TRUE(Put(1, SymbolOrigin::kUpload).ok());
  ASSERT_TRUE(Put(2, SymbolOrigin::kNode, "a").ok());
  const std::string large = EncodeSymbolTable(*Table(2, SymbolSource::kSymtab, 3000));
  EXPECT_FALSE(
      store_->Put(Id(2), large, SymbolOrigin::kNode, {.node_id = "hostile", .version = "1.0", .peer_id = "x"}).ok());
  ASSERT_NE(store_->Get(Id(2)), nullptr);
  EXPECT_EQ(store_->Get(Id(2))->function_count(), 3u);
  EXPECT_TRUE(Has(1));
}

TEST_F(SymbolStoreEvictionTest, ANodePushesOutItsOwnTablesFirst) {
  OpenWithSpaceFor(6);
  for (uint8_t n = 1; n <= 3; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kNode, std::to_string(n)).ok());
  for (uint8_t n = 10; n < 40; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kNode, "hostile").ok());
  for (uint8_t n = 1; n <= 3; ++n) EXPECT_TRUE(Has(n)) << static_cast<int>(n);
  EXPECT_TRUE(Has(39));
  EXPECT_EQ(Evictions("disk"), 27u);
}

TEST_F(SymbolStoreEvictionTest, TwoIdsOfOnePeerShareOneCharge) {
  OpenWithSpaceFor(3);
  ASSERT_TRUE(Put(1, SymbolOrigin::kNode, "a").ok());
  ASSERT_TRUE(Put(2, SymbolOrigin::kNode, "a").ok());
  ASSERT_TRUE(Put(3, SymbolOrigin::kNode, "b", "hostile").ok());
  ASSERT_TRUE(Put(4, SymbolOrigin::kNode, "c", "hostile").ok());
  EXPECT_TRUE(Has(1)) << "it is the oldest, but the peer is over its share";
  EXPECT_FALSE(Has(3));
  EXPECT_EQ(Evictions("disk"), 1u);
}

TEST_F(SymbolStoreEvictionTest, ANodeWithinItsSharePushesOutTablesOfNodesOverTheirs) {
  OpenWithSpaceFor(6);
  ASSERT_TRUE(Put(1, SymbolOrigin::kNode, "a").ok());
  for (uint8_t n = 2; n <= 6; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kNode, "large").ok());
  ASSERT_TRUE(Put(7, SymbolOrigin::kNode, "b").ok());
  EXPECT_TRUE(Has(1)) << "it is the oldest, but its node has only this table";
  EXPECT_FALSE(Has(2));
  EXPECT_EQ(Evictions("disk"), 1u);
}

TEST_F(SymbolStoreEvictionTest, AShareHasAMinimum) {
  OpenWithSpaceFor(6, /*share_min=*/5);
  for (uint8_t n = 1; n <= 6; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kNode, std::to_string(n)).ok());
  for (uint8_t n = 11; n <= 20; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kNode, "new").ok());
  EXPECT_FALSE(Has(5));
  EXPECT_TRUE(Has(6));
}

TEST_F(SymbolStoreEvictionTest, ANodeIsNotAskedAgainSoonForATableWithoutSpace) {
  OpenWithSpaceFor(1);
  ASSERT_TRUE(Put(1, SymbolOrigin::kUpload).ok());
  ASSERT_TRUE(store_->ShouldRequest(Id(2)));
  EXPECT_FALSE(Put(2, SymbolOrigin::kNode, "a").ok());
  clock_.Advance(SymbolDemand::Options().timeout_ns);
  EXPECT_FALSE(store_->ShouldRequest(Id(2)));
  clock_.Advance(SymbolDemand::Options().unavailable_ns);
  EXPECT_TRUE(store_->ShouldRequest(Id(2)));
}

TEST_F(SymbolStoreEvictionTest, ALowerLimitIsKeptWhateverTheRanks) {
  Open();
  for (uint8_t n = 1; n <= 3; ++n) ASSERT_TRUE(Put(n, SymbolOrigin::kUpload).ok());
  ASSERT_TRUE(Put(4, SymbolOrigin::kNode, "a").ok());
  SymbolStore::Options options;
  options.disk_bytes_max = BytesForTables(2.5, List()[0].stored_bytes);
  Open(options);
  EXPECT_FALSE(Has(4));
  EXPECT_FALSE(Has(1));
  EXPECT_TRUE(Has(2) && Has(3));
}

}  // namespace
}  // namespace tributary
