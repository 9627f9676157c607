#include <gtest/gtest.h>

#include "reducer/store/store_conformance_testing.h"

namespace tributary::store {
namespace {

TEST_P(EventConformance, PassedEventsShowHowManyHaveExpired) {
  TestCollector collector("node-a");
  const auto passed = [this](int64_t cursor) { return Reader()->CountPassedEvents(cursor).value(); };
  EXPECT_EQ(passed(0), 0u);
  for (int hour = 0; hour < 4; ++hour) {
    collector.Add(At(hour * 3600), collector.Event(ProcessEventKind::kStart, 7, "sh"));
    if (hour > 0) clock_.Advance(60 * kNsPerMinute);
    Commit(collector.Take(clock_.Unix()));
  }
  int64_t second = 0;
  EXPECT_EQ(Committed(&second, 2).size(), 2u);
  int64_t last = second;
  EXPECT_EQ(Committed(&last, 2).size(), 2u);
  EXPECT_EQ(passed(0), 0u);
  EXPECT_EQ(passed(second), 2u);
  EXPECT_EQ(passed(last), 4u);
  Reopen();
  EXPECT_EQ(passed(second), 2u);
  // The first three expire: one of them is behind the second event.
  clock_.Advance(7 * kNsPerDay - 30 * kNsPerMinute);
  Maintain();
  EXPECT_EQ(Events().size(), 1u);
  EXPECT_EQ(passed(0), 3u);
  EXPECT_EQ(passed(second), 3u);
  EXPECT_EQ(passed(last), 4u);
}

}  // namespace
}  // namespace tributary::store
