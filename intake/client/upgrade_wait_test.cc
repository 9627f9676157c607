#include "intake/client/upgrade_wait.h"

#include <gmock/gmock.h>

#include <functional>
#include <string>

#include "base/version.h"

namespace tributary::intake {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr int64_t kWaitMs = 60'000;

std::string LogOf(const std::function<void()>& run) {
  testing::internal::CaptureStderr();
  run();
  return testing::internal::GetCapturedStderr();
}

class UpgradeWaitTest : public testing::Test {
 protected:
  UpgradeWaitTest() {
    with_events_.events.resize(1);
    wait_.OnWelcome(/*takes_all=*/false);
  }
  int64_t waiting_sessions() { return metrics_.AddGauge("tributary_intake_client_waits_for_upgrade", "").value(); }

  FakeClock clock_;
  Metrics metrics_;
  UpgradeWait wait_{kWaitMs, "reducer.example:8000", clock_, metrics_};
  Batch samples_only_, with_events_;
};

TEST_F(UpgradeWaitTest, HoldsOnlyBatchesThatTheReducerCannotStore) {
  EXPECT_FALSE(wait_.Holds(samples_only_));
  EXPECT_FALSE(wait_.waiting());
  EXPECT_TRUE(wait_.Holds(with_events_));
  EXPECT_FALSE(wait_.Holds(samples_only_));
  EXPECT_TRUE(wait_.waiting());
  EXPECT_EQ(waiting_sessions(), 1);
}

TEST_F(UpgradeWaitTest, HoldsSamplesWhoseTypeHasADefinition) {
  samples_only_.sample_types = {{SampleType{77}, {"allocations", "bytes"}}};
  EXPECT_THAT(LogOf([&] { EXPECT_TRUE(wait_.Holds(samples_only_)); }), HasSubstr("with names of sample types"));
}

TEST_F(UpgradeWaitTest, EndsWhenTheReducerWasUpgraded) {
  EXPECT_TRUE(wait_.Holds(with_events_));
  wait_.OnWelcome(/*takes_all=*/true);
  EXPECT_FALSE(wait_.Holds(with_events_));
  EXPECT_EQ(waiting_sessions(), 0);
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_TRUE(wait_.Holds(with_events_)) << "a downgrade begins another wait";
}

TEST_F(UpgradeWaitTest, EndsAfterItsTimeAndDoesNotBeginAgain) {
  EXPECT_TRUE(wait_.Holds(with_events_));
  clock_.Advance(kWaitMs * kNsPerMs - 1);
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_TRUE(wait_.Holds(with_events_)) << "another connection does not end the wait";
  clock_.Advance(1);
  EXPECT_FALSE(wait_.Holds(with_events_));
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_FALSE(wait_.Holds(with_events_));
  EXPECT_EQ(waiting_sessions(), 0);
}

TEST_F(UpgradeWaitTest, ReleaseEndsAWaitThatHasBegun) {
  wait_.Release("full");
  EXPECT_TRUE(wait_.Holds(with_events_)) << "there was no wait to end";
  wait_.Release("full");
  EXPECT_FALSE(wait_.Holds(with_events_));
}

TEST_F(UpgradeWaitTest, AfterTheEndNoBatchWaits) {
  wait_.End("stops");
  EXPECT_FALSE(wait_.Holds(with_events_)) << "no wait has begun, and none begins";
  wait_.OnWelcome(/*takes_all=*/true);
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_FALSE(wait_.Holds(with_events_));
}

TEST_F(UpgradeWaitTest, ItsTimeRunsOnIfConnectionsGoToDifferentReducersInTurn) {
  EXPECT_TRUE(wait_.Holds(with_events_));
  const auto alternate = [&] {
    for (int i = 0; i < 100; ++i) {
      wait_.OnWelcome(/*takes_all=*/true);
      wait_.OnWelcome(/*takes_all=*/false);
      EXPECT_TRUE(wait_.Holds(with_events_));
    }
  };
  EXPECT_THAT(LogOf(alternate), AllOf(HasSubstr("waits no longer"), Not(HasSubstr("intake waits reducer"))));
  EXPECT_THAT(LogOf(alternate), IsEmpty()) << "at most one line of each kind in a minute";
  clock_.Advance(kWaitMs * kNsPerMs);
  wait_.OnWelcome(/*takes_all=*/true);
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_FALSE(wait_.Holds(with_events_)) << "the time began with the first wait";
  wait_.OnWelcome(/*takes_all=*/true);
  wait_.OnStored();
  wait_.OnWelcome(/*takes_all=*/false);
  EXPECT_TRUE(wait_.Holds(with_events_)) << "an upgraded reducer stored a batch";
}

TEST_F(UpgradeWaitTest, PauseEndsAWaitUntilABatchWaitsAgain) {
  EXPECT_TRUE(wait_.Holds(with_events_));
  wait_.Pause();
  EXPECT_EQ(waiting_sessions(), 0);
  clock_.Advance(kWaitMs * kNsPerMs);
  EXPECT_TRUE(wait_.Holds(with_events_)) << "the session is used again";
  wait_.Release("full");
  wait_.Pause();
  EXPECT_FALSE(wait_.Holds(with_events_)) << "what was released stays so";
}

TEST_F(UpgradeWaitTest, LogsOnceWhichVersionIsNeeded) {
  UpgradeWait other(kWaitMs, "reducer.example:8000", clock_, metrics_);  // an earlier session with the same reducer
  other.OnWelcome(/*takes_all=*/false);
  const std::string log = LogOf([&] { wait_.Holds(with_events_); });
  EXPECT_THAT(log, HasSubstr("intake waits reducer=reducer.example:8000"));
  EXPECT_THAT(log, HasSubstr("needs=\"" + VersionLine("reducer") + " with process events\""));
  const std::string later = LogOf([&] {
    wait_.Holds(with_events_);
    wait_.OnWelcome(/*takes_all=*/false);
    wait_.Holds(with_events_);
    other.Holds(with_events_);
  });
  EXPECT_THAT(later, IsEmpty());
}

TEST_F(UpgradeWaitTest, WithoutATimeNothingWaits) {
  UpgradeWait none(0, "reducer.example:8000", clock_, metrics_);
  none.OnWelcome(/*takes_all=*/false);
  const std::string log = LogOf([&] { EXPECT_FALSE(none.Holds(with_events_)); });
  EXPECT_THAT(log, HasSubstr("sends samples without process events"));
  EXPECT_THAT(log, HasSubstr(VersionLine("reducer")));
  EXPECT_THAT(LogOf([&] { EXPECT_FALSE(none.Holds(with_events_)); }), IsEmpty());
}

}  // namespace
}  // namespace tributary::intake
