#include "reducer/symbolizer/symbol_demand.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

constexpr SymbolAsker kFirst{1}, kSecond{2};

ExecutableId Id(uint32_t n) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                             std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
}

class SymbolDemandTest : public testing::Test {
 protected:
  const SymbolDemand::Options options_;
  FakeClock clock_;
  Metrics metrics_;
  SymbolDemand demand_{options_, clock_, metrics_};
};

TEST_F(SymbolDemandTest, AsksNoOtherNodeBeforeTheTimeout) {
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  clock_.Advance(options_.timeout_ns - 1);
  EXPECT_FALSE(demand_.Ask(Id(1), kSecond));
  clock_.Advance(1);
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
  EXPECT_FALSE(demand_.Ask(Id(1), kFirst));
}

// While a node sends any table, all tables that it owes wait for it, because tables come one after the other.
TEST_F(SymbolDemandTest, ProgressPostponesTheTimeoutOfAllPendingTables) {
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  EXPECT_TRUE(demand_.Ask(Id(2), kFirst));
  EXPECT_TRUE(demand_.Ask(Id(3), kSecond));
  for (int i = 0; i < 5; ++i) {
    clock_.Advance(options_.timeout_ns - 1);
    demand_.Progress(kFirst);
    EXPECT_FALSE(demand_.Ask(Id(1), kSecond)) << i;
    EXPECT_FALSE(demand_.Ask(Id(2), kSecond)) << i;
  }
  EXPECT_TRUE(demand_.Ask(Id(3), kFirst)) << "owed by one that sends nothing";
  clock_.Advance(options_.timeout_ns);
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
}

TEST_F(SymbolDemandTest, EndlessProgressDoesNotKeepATableFromOthers) {
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  for (int64_t at = kNsPerSecond; at < options_.longest_ns; at += kNsPerSecond) {
    clock_.Advance(kNsPerSecond);
    demand_.Progress(kFirst);
    ASSERT_FALSE(demand_.Ask(Id(1), kSecond)) << at;
  }
  clock_.Advance(kNsPerSecond);
  demand_.Progress(kFirst);
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
}

TEST_F(SymbolDemandTest, TablesRequestedFromAClosedConnectionMayBeAskedForAtOnce) {
  uint64_t cursor = 0;
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  EXPECT_TRUE(demand_.Ask(Id(2), kFirst));
  EXPECT_TRUE(demand_.Ask(Id(3), kFirst));
  demand_.Answered(Id(2));
  demand_.Unavailable(Id(3));
  demand_.Release(kFirst);
  EXPECT_EQ(demand_.ReleasedSince(cursor), std::vector<ExecutableId>{Id(1)});
  EXPECT_TRUE(demand_.ReleasedSince(cursor).empty());
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
  EXPECT_FALSE(demand_.Ask(Id(3), kSecond)) << "there is none";
  demand_.Release(kFirst);
  EXPECT_FALSE(demand_.Ask(Id(1), kFirst)) << "it is asked of another by now";
  EXPECT_TRUE(demand_.ReleasedSince(cursor).empty());
}

// The first asker was too slow. Its connection ends when the second has been asked.
TEST_F(SymbolDemandTest, ClosingOneAskerDoesNotReleaseTablesOfAnother) {
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  clock_.Advance(options_.timeout_ns);
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
  demand_.Release(kFirst);
  demand_.Release(Id(1), kFirst);
  EXPECT_FALSE(demand_.Ask(Id(1), kFirst));
  demand_.Release(Id(1), kSecond);
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
}

TEST_F(SymbolDemandTest, AsksAgainForUnusableTablesAfterTheTimeout) {
  EXPECT_TRUE(demand_.Ask(Id(1), kFirst));
  clock_.Advance(options_.timeout_ns - 1);
  demand_.Defer(Id(1));
  demand_.Progress(kFirst);
  clock_.Advance(options_.timeout_ns - 1);
  EXPECT_FALSE(demand_.Ask(Id(1), kSecond));
  clock_.Advance(1);
  EXPECT_TRUE(demand_.Ask(Id(1), kSecond));
  demand_.Defer(Id(2));
  EXPECT_TRUE(demand_.Ask(Id(2), kSecond)) << "never asked for";
}

TEST_F(SymbolDemandTest, RequestsAndReleasesAreBounded) {
  for (uint32_t n = 0; n < SymbolDemand::kRequestsMax; ++n) ASSERT_TRUE(demand_.Ask(Id(n), kFirst));
  EXPECT_FALSE(demand_.Ask(Id(SymbolDemand::kRequestsMax), kSecond));
  demand_.Unavailable(Id(SymbolDemand::kRequestsMax));
  demand_.Release(kFirst);
  uint64_t cursor = 0;
  EXPECT_EQ(demand_.ReleasedSince(cursor).size(), SymbolDemand::kReleasedMax);
  EXPECT_TRUE(demand_.Ask(Id(SymbolDemand::kRequestsMax), kSecond));
}

TEST_F(SymbolDemandTest, AFullTableDropsExpiredRequests) {
  for (uint32_t n = 0; n < SymbolDemand::kRequestsMax; ++n) {
    ASSERT_TRUE(demand_.Ask(Id(n), n % 2 == 0 ? kFirst : kSecond));
  }
  clock_.Advance(options_.timeout_ns);
  demand_.Progress(kSecond);
  EXPECT_TRUE(demand_.Ask(Id(SymbolDemand::kRequestsMax), kFirst));
  EXPECT_FALSE(demand_.Ask(Id(1), kFirst)) << "its node is sending";
}

}  // namespace
}  // namespace tributary
