#include "kernel-collector/budget/cpu_budget.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/status.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// Costs one CPU of ten in the process and the same in BPF: 20% of the node, where 1% is allowed.
class CpuBudgetTest : public ::testing::Test {
 protected:
  CpuBudgetTest()
      : budget_({.budget = 0.01,
                 .period_ns = kNsPerSecond / 100,
                 .process_cpu_ns = [this] { return clock_.Monotonic().value; },
                 .online_cpus = [] { return 10; }},
                clock_, metrics_,
                {.bpf_run_ns = [this] { return static_cast<uint64_t>(clock_.Monotonic().value); },
                 .set_period =
                     [this](int64_t period_ns) {
                       asked_ns_ = period_ns;
                       return answer_;
                     }}) {}

  void Tick(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      budget_.Tick();
      clock_.Advance(kNsPerSecond);
    }
  }

  FakeClock clock_;
  Metrics metrics_;
  absl::Status answer_;
  int64_t asked_ns_ = 0;
  CpuBudget budget_;
};

TEST_F(CpuBudgetTest, LowersTheRateAndReportsIt) {
  EXPECT_THAT(metrics_.PrometheusText(), HasSubstr("tributary_collector_sample_rate_hz 100\n"));
  Tick(10);
  EXPECT_GT(asked_ns_, 20 * kNsPerSecond / 100);
  EXPECT_EQ(budget_.period_ns(), asked_ns_);
  std::string text = metrics_.PrometheusText();
  EXPECT_THAT(text, HasSubstr("tributary_collector_cpu_share 0.2\n"));
  EXPECT_THAT(text, HasSubstr("tributary_collector_rate_changes_total{direction=\"lowered\"} 1\n"));
  EXPECT_THAT(text, HasSubstr("tributary_collector_rate_changes_total{direction=\"raised\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("tributary_collector_process_cpu_seconds_total 10\n"));
  EXPECT_THAT(text, ::testing::Not(HasSubstr("tributary_collector_sample_rate_hz 100\n")));
}

TEST_F(CpuBudgetTest, TriesAgainWhenThePeriodCouldNotBeSet) {
  answer_ = Error(absl::StatusCode::kInternal, "no");
  Tick(10);
  EXPECT_GT(asked_ns_, 0);
  EXPECT_EQ(budget_.period_ns(), kNsPerSecond / 100) << "the period in force";
  answer_ = absl::OkStatus();
  Tick(1);
  EXPECT_EQ(budget_.period_ns(), asked_ns_);
}

TEST_F(CpuBudgetTest, AnotherConfiguredRateIsInForceAtOnceAndBoundByTheBudget) {
  budget_.SetConfiguredPeriod(kNsPerSecond / 999);
  EXPECT_EQ(asked_ns_, kNsPerSecond / 999);
  EXPECT_EQ(budget_.period_ns(), kNsPerSecond / 999);
  Tick(10);
  EXPECT_GT(budget_.period_ns(), kNsPerSecond / 999);
}

TEST_F(CpuBudgetTest, RetriesAConfiguredRateAfterAnError) {
  answer_ = Error(absl::StatusCode::kInternal, "no");
  budget_.SetConfiguredPeriod(kNsPerSecond / 50);
  EXPECT_EQ(budget_.period_ns(), kNsPerSecond / 100);
  answer_ = absl::OkStatus();
  Tick(1);
  EXPECT_EQ(budget_.period_ns(), kNsPerSecond / 50);
}

}  // namespace
}  // namespace tributary
