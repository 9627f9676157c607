#include "intake/server/limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tributary::intake {
namespace {

using Share = std::unique_ptr<Limits::Share>;

TEST(Limits, EvictsTheConnectionThatHeldMostForLongest) {
  FakeClock clock;
  Limits limits({.memory_bytes_max = 10'000}, clock);
  std::vector<int> evicted;
  std::vector<Share> shares(5);
  for (int i = 0; i < 5; ++i) {
    shares[i] = *limits.Join("", [&, i] {
      evicted.push_back(i);
      shares[i]->Hold(0);
    });
  }
  shares[0]->Hold(10);  // for a long time, but very little
  clock.Advance(60 * kNsPerSecond);
  shares[1]->Hold(4000);
  clock.Advance(kNsPerSecond);
  shares[2]->Hold(3000);
  clock.Advance(10 * kNsPerSecond);
  shares[3]->Hold(2990);
  EXPECT_EQ(evicted, std::vector<int>{});
  EXPECT_EQ(limits.memory_bytes(), 10'000u);
  shares[4]->Hold(1);
  EXPECT_EQ(evicted, std::vector<int>{1});
  EXPECT_EQ(limits.memory_bytes(), 6001u);
  shares[4]->Hold(9'000);  // among the new ones, the largest is evicted
  EXPECT_EQ(evicted, (std::vector<int>{1, 2, 4}));
  shares[4]->Hold(10'001);  // evicted even if it is the only one
  EXPECT_EQ(evicted, (std::vector<int>{1, 2, 4, 4}));
  EXPECT_EQ(limits.memory_bytes(), 3000u);
  shares.clear();
  EXPECT_EQ(limits.memory_bytes(), 0u);
}

TEST(Limits, CreditIsSpreadOverConnections) {
  FakeClock clock;
  Limits limits({.credit_bytes_max = 64u << 20}, clock);
  std::vector<Share> shares;
  auto join = [&](size_t count) {
    while (shares.size() < count) shares.push_back(*limits.Join("", [] {}));
  };
  EXPECT_EQ(limits.CreditBytes(), 16u << 20);
  join(4);
  EXPECT_EQ(limits.CreditBytes(), 16u << 20);
  join(16);
  EXPECT_EQ(limits.CreditBytes(), 4u << 20);
  join(1000);
  EXPECT_EQ(limits.CreditBytes(), 256u << 10);
  shares.resize(32);
  EXPECT_EQ(limits.CreditBytes(), 2u << 20);
}

TEST(Limits, NodeWaitsWhenOverItsRate) {
  FakeClock clock;
  Limits limits({.node_bytes_per_second = 1000}, clock);
  Share first = *limits.Join("a", [] {}), second = *limits.Join("a", [] {}), other = *limits.Join("b", [] {});
  EXPECT_EQ(first->Take(NodeRate::kBytes, 1500), 0);
  EXPECT_EQ(second->Take(NodeRate::kBytes, 500), 0) << "twice a second's worth at once";
  EXPECT_EQ(second->Take(NodeRate::kBytes, 500), 501) << "over all connections of the node";
  EXPECT_EQ(other->Take(NodeRate::kBytes, 2000), 0) << "and of no other";
  clock.Advance(500 * kNsPerMs);
  EXPECT_EQ(first->Take(NodeRate::kBytes, 0), 0);
  EXPECT_EQ(first->Take(NodeRate::kBytes, 1), 2);
  clock.Advance(3600 * kNsPerSecond);
  EXPECT_EQ(first->Take(NodeRate::kBytes, 2000), 0);
  EXPECT_EQ(first->Take(NodeRate::kBytes, 1), 2);
  Share unnamed = *limits.Join("", [] {});
  EXPECT_EQ(unnamed->Take(NodeRate::kBytes, 1 << 30), 0);
}

TEST(Limits, ALongWaitPaysALargeDebt) {
  FakeClock clock;
  Limits limits({.node_work_per_second = 10}, clock);
  Share share = *limits.Join("a", [] {});
  const int64_t wait_ms = share->Take(NodeRate::kWork, 10'020);
  EXPECT_EQ(wait_ms, 1'000'001);
  clock.Advance(wait_ms * kNsPerMs);
  EXPECT_EQ(share->Take(NodeRate::kWork, 0), 0);
}

TEST(Limits, NodeKeepsItsDebtsWhenItReconnects) {
  FakeClock clock;
  Limits limits({.node_work_per_second = 1000, .node_generations_per_second = 2}, clock);
  Share share = *limits.Join("a", [] {});
  EXPECT_EQ(share->Take(NodeRate::kWork, 3000), 1001);
  for (int i = 0; i < 4; ++i) EXPECT_EQ(share->Take(NodeRate::kGenerations, 1), 0);
  EXPECT_EQ(share->Take(NodeRate::kGenerations, 1), 501);
  share.reset();
  share = *limits.Join("a", [] {});
  EXPECT_EQ(share->Take(NodeRate::kWork, 0), 1001);
  EXPECT_EQ(share->Take(NodeRate::kGenerations, 0), 501);
  EXPECT_EQ(share->Take(NodeRate::kBytes, 0), 0);
  clock.Advance(kNsPerSecond);
  EXPECT_EQ(share->Take(NodeRate::kWork, 0), 0);
  EXPECT_EQ(share->Take(NodeRate::kWork, 1), 2) << "no more than was gained";
}

TEST(Limits, ForgetsNodesWithoutConnections) {
  FakeClock clock;
  Limits limits({.node_work_per_second = 1000}, clock);
  Share open = *limits.Join("open", [] {});
  EXPECT_GT(open->Take(NodeRate::kWork, 3000), 0);
  for (int i = 0; i < 5000; ++i) {
    Share share = *limits.Join(std::to_string(i), [] {});
    EXPECT_EQ(share->Take(NodeRate::kWork, 3000), 1001);
  }
  EXPECT_LE(limits.nodes(), 4097u);
  EXPECT_GT(open->Take(NodeRate::kWork, 0), 0) << "its connection is open";
}

TEST(Limits, LimitsConnectionsOfANode) {
  FakeClock clock;
  Limits limits({.node_connections_max = 2}, clock);
  Share first = *limits.Join("a", [] {}), second = *limits.Join("a", [] {});
  EXPECT_TRUE(absl::IsResourceExhausted(limits.Join("a", [] {}).status()));
  EXPECT_TRUE(limits.Join("b", [] {}).ok());
  second.reset();
  EXPECT_TRUE(limits.Join("a", [] {}).ok());
}

}  // namespace
}  // namespace tributary::intake
