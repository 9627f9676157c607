#include "kernel-collector/direct/request_pauses.h"

#include <gtest/gtest.h>

#include <string>

#include "kernel-collector/direct/direct_testing.h"

namespace tributary {
namespace {

constexpr MonotonicNs At(int64_t seconds) { return MonotonicNs{seconds * kNsPerSecond}; }

TEST(RequestPausesTest, AFailureThatMayBeOverSoonPausesForAMinuteAndThenLonger) {
  for (const absl::StatusCode why : {absl::StatusCode::kInternal, absl::StatusCode::kResourceExhausted,
                                     absl::StatusCode::kUnavailable, absl::StatusCode::kNotFound}) {
    RequestPauses pauses;
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(0)));
    pauses.OnFailure(TestId("a"), why, At(0));
    EXPECT_TRUE(pauses.IsPaused(TestId("a"), At(59)));
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(60)));
    EXPECT_FALSE(pauses.IsPaused(TestId("b"), At(0)));
    pauses.OnFailure(TestId("a"), why, At(60));
    EXPECT_TRUE(pauses.IsPaused(TestId("a"), At(60 + 119)));
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(60 + 120)));
    for (int i = 0; i < 100; ++i) pauses.OnFailure(TestId("a"), why, At(1000));
    EXPECT_TRUE(pauses.IsPaused(TestId("a"), At(1000 + 3599)));
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(1000 + 3600)));
    pauses.OnAdded(TestId("a"), At(5000));
    pauses.OnFailure(TestId("a"), why, At(5000));
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(5060)));
  }
}

TEST(RequestPausesTest, OtherFailuresPauseForAnHour) {
  RequestPauses pauses;
  pauses.OnFailure(TestId("a"), absl::StatusCode::kInvalidArgument, At(0));
  EXPECT_TRUE(pauses.IsPaused(TestId("a"), At(3599)));
  EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(3600)));
}

TEST(RequestPausesTest, EachDropPausesLonger) {
  RequestPauses pauses;
  int64_t now = 0;
  for (const int64_t pause : {10, 60, 600, 600}) {
    pauses.OnAdded(TestId("a"), At(now));
    pauses.OnDropped(TestId("a"), At(now));
    EXPECT_TRUE(pauses.IsPaused(TestId("a"), At(now + pause - 1)));
    now += pause;
    EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(now)));
  }
  // A table that was long in memory did not displace the others all the time.
  pauses.OnAdded(TestId("a"), At(now));
  now += 3600;
  pauses.OnDropped(TestId("a"), At(now));
  EXPECT_FALSE(pauses.IsPaused(TestId("a"), At(now + 10)));
}

TEST(RequestPausesTest, ForgetsTheOldestIds) {
  RequestPauses pauses;
  pauses.OnFailure(TestId("first"), absl::StatusCode::kNotFound, At(0));
  pauses.OnFailure(TestId("second"), absl::StatusCode::kNotFound, At(0));
  for (size_t i = 2; i < RequestPauses::kIdsMax; ++i) {
    pauses.OnFailure(TestId("id " + std::to_string(i)), absl::StatusCode::kNotFound, At(0));
  }
  pauses.OnFailure(TestId("first"), absl::StatusCode::kNotFound, At(0));
  EXPECT_TRUE(pauses.IsPaused(TestId("second"), At(0)));
  pauses.OnFailure(TestId("last"), absl::StatusCode::kNotFound, At(0));
  EXPECT_EQ(pauses.size(), RequestPauses::kIdsMax);
  EXPECT_TRUE(pauses.IsPaused(TestId("first"), At(0)));
  EXPECT_FALSE(pauses.IsPaused(TestId("second"), At(0)));
  EXPECT_TRUE(pauses.IsPaused(TestId("last"), At(0)));
}

}  // namespace
}  // namespace tributary
