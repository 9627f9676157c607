#include "reducer/store/session_ledger.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

namespace tributary::store {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

MemoryUse Use(size_t sessions, size_t strings) {
  MemoryUse use;
  use[MemoryKind::kSessions] = sessions;
  use[MemoryKind::kStrings] = strings;
  return use;
}

class SessionLedgerTest : public testing::Test {
 protected:
  int64_t Shown(const char* kind) {
    return metrics_.AddGauge("tributary_reducer_session_memory_bytes", "", {{"kind", kind}}).value();
  }
  Metrics metrics_;
};

TEST_F(SessionLedgerTest, AddsUpAndShowsTheMemoryOfAllOwners) {
  SessionLedger first(1'000, metrics_);
  std::optional<SessionLedger> second(std::in_place, 1'000, metrics_);
  MemoryUse a, b, c;
  first.Count(&a, Use(10, 300));
  first.Count(&b, Use(10, 50));
  second->Count(&c, Use(10, 1));
  EXPECT_EQ(first.bytes(), 370u);
  EXPECT_EQ(Shown("strings"), 351);
  EXPECT_EQ(Shown("sessions"), 30);
  first.Count(&a, Use(10, 100));
  EXPECT_EQ(a, Use(10, 100));
  EXPECT_EQ(first.bytes(), 170u);
  second.reset();
  EXPECT_EQ(Shown("strings"), 150);
  first.Count(&a, {});
  first.Count(&b, {});
  EXPECT_EQ(first.bytes(), 0u);
  EXPECT_EQ(Shown("strings"), 0);
}

TEST_F(SessionLedgerTest, AFullLedgerAsksForSomeRoom) {
  SessionLedger ledger(1'600, metrics_);
  MemoryUse a;
  ledger.Count(&a, Use(0, 1'600));
  EXPECT_EQ(ledger.Excess(), 0u);
  ledger.Count(&a, Use(0, 1'601));
  EXPECT_EQ(ledger.Excess(), 101u);
}

TEST_F(SessionLedgerTest, EvictsTheLargestIdleSessionsFirst) {
  const std::vector<Evictable> all = {
      {.bytes = 900, .is_idle = false, .node_id = "a"}, {.bytes = 10, .is_idle = true, .node_id = "b"},
      {.bytes = 100, .is_idle = true, .node_id = "c"},  {.bytes = 950, .is_idle = false, .node_id = "d"},
      {.bytes = 50, .is_idle = true, .node_id = "e"},
  };
  EXPECT_THAT(ChooseEvictions(all, 0), IsEmpty());
  EXPECT_THAT(ChooseEvictions(all, 100), ElementsAre(2));
  EXPECT_THAT(ChooseEvictions(all, 101), ElementsAre(2, 4));
  EXPECT_THAT(ChooseEvictions(all, 161), ElementsAre(2, 4, 1, 3)) << "active ones come last";
  EXPECT_EQ(ChooseEvictions(all, 1'000'000).size(), all.size());
}

// The sessions of the hostile node are the smallest, but together the most.
TEST_F(SessionLedgerTest, EvictsActiveSessionsOfTheNodeThatTakesTheMost) {
  const std::vector<Evictable> all = {
      {.bytes = 500, .node_id = "honest"},  {.bytes = 300, .node_id = "hostile"}, {.bytes = 301, .node_id = "hostile"},
      {.bytes = 299, .node_id = "hostile"}, {.bytes = 50, .node_id = "other"},
  };
  EXPECT_THAT(ChooseEvictions(all, 500), ElementsAre(2, 1));
  EXPECT_THAT(ChooseEvictions(all, 700), ElementsAre(2, 1, 0));
}

TEST(AllocatedBytes, CountsOnlyTextsOutsideOfTheObject) {
  EXPECT_EQ(AllocatedBytes("short"), 0u);
  EXPECT_EQ(AllocatedBytes(std::string(100, 'x')), 116u);
  std::string reserved = "short";
  reserved.reserve(1'000);
  EXPECT_GE(AllocatedBytes(reserved), 1'000u);
}

}  // namespace
}  // namespace tributary::store
