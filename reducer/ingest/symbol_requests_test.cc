#include "reducer/ingest/symbol_requests.h"

#include <gtest/gtest.h>

namespace tributary::ingest {
namespace {

constexpr MonotonicNs kStart{1'000 * kNsPerSecond};

ExecutableId Id(uint32_t n) {
  return *ExecutableId::Make(ExecutableIdKind::kGnuBuildId,
                             std::string_view(reinterpret_cast<const char*>(&n), sizeof(n)));
}
std::vector<ExecutableId> Ids(uint32_t from, uint32_t to) {
  std::vector<ExecutableId> ids;
  for (uint32_t n = from; n < to; ++n) ids.push_back(Id(n));
  return ids;
}

TEST(SymbolRequests, AsksForAFewAtATime) {
  SymbolRequests requests;
  requests.Want(Ids(0, 20));
  std::vector<ExecutableId> candidates = requests.TakeCandidates();
  EXPECT_EQ(candidates, Ids(0, 20));
  EXPECT_TRUE(requests.TakeCandidates().empty()) << "one look-up at a time";
  // The first ten were considered, and eight of them are asked for.
  requests.Chosen(Ids(2, 10), 10, kStart);
  EXPECT_TRUE(requests.TakeCandidates().empty()) << "eight are not answered";
  requests.Answered(Id(2));
  EXPECT_EQ(requests.ask_max(), 1u);
  EXPECT_EQ(requests.TakeCandidates(), Ids(10, 20));
}

TEST(SymbolRequests, AsksOnceHoweverOftenWanted) {
  SymbolRequests requests;
  requests.Want(Ids(0, 3));
  requests.Want(Ids(0, 3));
  requests.Want({ExecutableId()});
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 3));
  requests.Chosen(Ids(0, 3), 3, kStart);
  requests.Want(Ids(0, 3));
  EXPECT_TRUE(requests.TakeCandidates().empty());
}

TEST(SymbolRequests, DroppedExecutablesAreWantedAgainLater) {
  SymbolRequests requests;
  const size_t empty = requests.memory_bytes();
  requests.Want(Ids(0, 5'000));
  EXPECT_GT(requests.memory_bytes(), 5'000 * sizeof(ExecutableId));
  EXPECT_EQ(requests.TakeCandidates().size(), SymbolRequests::kCandidatesMax);
  requests.DropWaiting();
  EXPECT_LT(requests.memory_bytes(), 1'000 * sizeof(ExecutableId));
  requests.Chosen({}, SymbolRequests::kCandidatesMax, kStart);
  EXPECT_TRUE(requests.TakeCandidates().empty());
  EXPECT_LE(requests.memory_bytes(), empty + SymbolRequests::kCandidatesMax * sizeof(ExecutableId));
  requests.Tick(Ids(0, 10), kStart);
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 10));
}

TEST(SymbolRequests, AsksAgainForUnansweredTables) {
  SymbolRequests requests;
  requests.Tick(Ids(0, 8), kStart);
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 8));
  requests.Chosen(Ids(0, 8), 8, kStart);
  MonotonicNs later{kStart.value + SymbolRequests::kRoundNs};
  requests.Tick(Ids(0, 8), later);
  EXPECT_TRUE(requests.TakeCandidates().empty());
  later.value = kStart.value + SymbolRequests::kAnswerNs + 1;
  requests.Tick(Ids(0, 8), later);
  EXPECT_EQ(requests.TakeCandidates().size(), 8u);
}

TEST(SymbolRequests, WaitsForASendingNode) {
  SymbolRequests requests;
  EXPECT_FALSE(requests.has_pending());
  requests.Want(Ids(0, 8));
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 8));
  EXPECT_TRUE(requests.has_pending());
  requests.Chosen(Ids(0, 8), 8, kStart);
  MonotonicNs now = kStart;
  while (now.value - kStart.value + SymbolRequests::kAnswerNs <= SymbolRequests::kLongestNs) {
    now.value += SymbolRequests::kAnswerNs;
    requests.Tick({}, now);
    EXPECT_EQ(requests.ask_max(), 0u);
    requests.Progress(now);
  }
  now.value = kStart.value + SymbolRequests::kLongestNs + 1;
  requests.Progress(now);
  requests.Tick({}, now);
  EXPECT_EQ(requests.ask_max(), 8u) << "not for ever";
  EXPECT_FALSE(requests.has_pending());
}

TEST(SymbolRequests, AFullLookUpLeavesAllCandidates) {
  SymbolRequests requests;
  requests.Want(Ids(0, 5));
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 5));
  requests.Chosen({}, 0, kStart);
  EXPECT_EQ(requests.TakeCandidates(), Ids(0, 5));
}

TEST(SymbolRequests, WaitsForNoMoreThanItsCap) {
  SymbolRequests requests;
  requests.Want(Ids(0, SymbolRequests::kWaitingMax + 100));
  size_t seen = 0;
  for (;;) {
    std::vector<ExecutableId> candidates = requests.TakeCandidates();
    if (candidates.empty()) break;
    seen += candidates.size();
    requests.Chosen({}, candidates.size(), kStart);
  }
  EXPECT_EQ(seen, SymbolRequests::kWaitingMax);
}

}  // namespace
}  // namespace tributary::ingest
