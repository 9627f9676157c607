#include "kernel-collector/budget/cpu_governor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

namespace tributary {
namespace {

constexpr double kBudget = 0.01;
constexpr int kCpus = 4;
constexpr double kAllowed = kBudget * kCpus;  // CPUs

double HzOf(const CpuGovernor& governor) { return 1e9 / static_cast<double>(governor.period_ns()); }

// A collector that costs `fixed` CPUs at every rate, plus `per_sample` CPU-s for each sample of a busy CPU.
struct Machine {
  explicit Machine(double budget = kBudget, int64_t hz = 999)
      : governor({.budget = budget, .period_ns = 1'000'000'000 / hz}) {
    governor.Feed(use);
  }

  void Run(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      double rate = HzOf(governor) * use.online_cpus;
      double noise = 1 + noise_share * std::uniform_real_distribution<double>(-1, 1)(random);
      use.time.value += kNsPerSecond;
      use.process_ns += std::llround(1e9 * noise * (fixed + rate * per_sample / 2)) + burst_ns;
      use.bpf_ns += std::llround(1e9 * noise * rate * per_sample / 2);
      spent_ns = use.process_ns + use.bpf_ns;
      burst_ns = 0;
      if (governor.Feed(use)) rates.push_back(HzOf(governor));
    }
  }
  double spent_cpus() const { return static_cast<double>(spent_ns) / static_cast<double>(use.time.value); }

  double fixed = 0, per_sample = 0, noise_share = 0;
  int64_t burst_ns = 0, spent_ns = 0;
  CpuUse use{.time = MonotonicNs{0}, .online_cpus = kCpus};
  CpuGovernor governor;
  std::vector<double> rates;  // each change
  std::mt19937 random{7};
};

TEST(CpuGovernor, KeepsTheRateOfACheapCollector) {
  Machine machine;
  machine.per_sample = 0.9 * kAllowed / (999 * kCpus);
  machine.noise_share = 0.5;
  machine.Run(3600);
  EXPECT_TRUE(machine.rates.empty());
  EXPECT_NEAR(*machine.governor.share(), 0.9 * kBudget, 0.4 * kBudget);
}

TEST(CpuGovernor, AnExpensiveCollectorIsWithinItsBudgetAfterOneJump) {
  Machine machine;
  machine.per_sample = 20 * kAllowed / (999 * kCpus);
  machine.Run(10);
  ASSERT_EQ(machine.rates.size(), 1u);
  machine.Run(50);
  EXPECT_EQ(machine.rates.size(), 1u);
  EXPECT_LE(*machine.governor.share(), kBudget);
  EXPECT_GT(*machine.governor.share(), kBudget / 2);
}

TEST(CpuGovernor, AveragesTheBudgetAndMovesByOneStepOnceSettled) {
  for (double times : {1.2, 1.7, 3.0, 8.0, 50.0}) {
    Machine machine;
    machine.per_sample = times * kAllowed / (999 * kCpus);
    machine.noise_share = 0.3;
    machine.Run(600);
    machine.rates.clear();
    machine.Run(4 * 3600);
    // Only the minute saved at the start may be spent beyond the budget.
    EXPECT_LE(machine.spent_cpus(), kAllowed * 1.02) << times;
    double lowest = HzOf(machine.governor), highest = lowest;
    for (double hz : machine.rates) {
      lowest = std::min(lowest, hz);
      highest = std::max(highest, hz);
    }
    EXPECT_LE(highest / lowest, RateLadder::kStep * 1.001) << times;
    EXPECT_LE(machine.rates.size(), 2u * (4 * 60 / 16 + 5)) << times << ": tries become rare";
  }
}

TEST(CpuGovernor, ABurstAtTheStartIsPaidFromTheSavings) {
  Machine machine;
  machine.per_sample = 0.3 * kAllowed / (999 * kCpus);
  machine.burst_ns = std::llround(0.9 * 60 * kAllowed * 1e9);  // the first scan of all processes
  machine.Run(600);
  EXPECT_TRUE(machine.rates.empty());
}

TEST(CpuGovernor, ABurstBeyondTheSavingsLowersTheRateForHalfAMinuteAtMost) {
  Machine machine;
  machine.per_sample = 0.3 * kAllowed / (999 * kCpus);
  machine.burst_ns = std::llround(3 * 60 * kAllowed * 1e9);
  machine.Run(5);
  ASSERT_EQ(machine.rates.size(), 1u);
  EXPECT_LT(machine.rates[0], 999);
  machine.Run(30);
  EXPECT_NEAR(HzOf(machine.governor), 999, 0.1);
}

TEST(CpuGovernor, SavesBeforeItRaises) {
  Machine machine;
  machine.per_sample = 20 * kAllowed / (999 * kCpus);
  machine.Run(5);
  ASSERT_EQ(machine.rates.size(), 1u);
  // Saves 0.55 s of budget per second: the 15 s for a raise take 30 s.
  machine.per_sample = 0.45 * kAllowed / (machine.rates[0] * kCpus);
  machine.Run(25);
  EXPECT_EQ(machine.rates.size(), 1u);
  machine.Run(10);
  ASSERT_EQ(machine.rates.size(), 2u);
  EXPECT_GT(machine.rates[1], machine.rates[0]);
}

TEST(CpuGovernor, RisesAgainWhenTheLoadIsGone) {
  Machine machine;
  machine.per_sample = 100 * kAllowed / (999 * kCpus);
  machine.Run(120);
  EXPECT_LT(HzOf(machine.governor), 999 / 80.0);
  machine.per_sample /= 1000;
  machine.Run(60);
  EXPECT_NEAR(HzOf(machine.governor), 999, 0.1);
}

TEST(CpuGovernor, FixedCostLowersTheRateToOneHertzAndNoFurther) {
  Machine machine;
  machine.fixed = 3 * kAllowed;
  machine.Run(600);
  EXPECT_TRUE(machine.governor.at_lowest_rate());
  EXPECT_GE(HzOf(machine.governor), 1);
  EXPECT_LT(HzOf(machine.governor), RateLadder::kStep);
}

TEST(CpuGovernor, TriesHigherRatesWhenMostOfTheCostIsFixed) {
  Machine machine;
  machine.fixed = 3 * kAllowed;
  machine.per_sample = 0.1 * kAllowed / (999 * kCpus);
  machine.Run(300);
  EXPECT_TRUE(machine.governor.at_lowest_rate());
  machine.fixed = 0.65 * kAllowed;  // times 1.6 it is over the budget, so only an attempt can show it
  machine.Run(1800);
  EXPECT_NEAR(HzOf(machine.governor), 999, 0.1);
}

TEST(CpuGovernor, PeriodicBurstsOverTheBudgetDoNotSwingTheRate) {
  Machine machine;
  machine.per_sample = 0.05 * kAllowed / (999 * kCpus);
  for (int i = 0; i < 360; ++i) {
    machine.burst_ns = std::llround(20 * kAllowed * 1e9);  // twice the budget, all of it in one of ten seconds
    machine.Run(10);
  }
  ASSERT_FALSE(machine.rates.empty());
  for (size_t i = 1; i < machine.rates.size(); ++i) EXPECT_LT(machine.rates[i], machine.rates[i - 1]) << "never raised";
}

TEST(CpuGovernor, FollowsTheNumberOfCpus) {
  Machine machine;
  machine.fixed = 0.7 * kAllowed;
  machine.Run(300);
  EXPECT_TRUE(machine.rates.empty());
  machine.use.online_cpus = 2;
  machine.Run(300);
  EXPECT_LT(HzOf(machine.governor), 999);
  EXPECT_NEAR(*machine.governor.share(), 0.7 * 2 * kBudget, 0.01 * kBudget);
}

TEST(CpuGovernor, ToleratesShrinkingTotalsAndLongSilence) {
  Machine machine;
  machine.use.process_ns = 1'000'000'000'000;
  machine.use.time.value += kNsPerSecond;
  machine.governor.Feed(machine.use);
  machine.use.process_ns = 0;
  machine.use.time.value += 3600 * kNsPerSecond;
  machine.governor.Feed(machine.use);
  machine.Run(60);
  EXPECT_NEAR(HzOf(machine.governor), 999, 0.1);
}

TEST(CpuGovernor, WithoutABudgetItOnlyMeasures) {
  Machine machine(std::numeric_limits<double>::infinity());
  machine.fixed = kCpus;
  machine.Run(600);
  EXPECT_TRUE(machine.rates.empty());
  EXPECT_NEAR(*machine.governor.share(), 1, 0.001);
}

TEST(CpuGovernor, AOneHertzCollectorStaysAsItIs) {
  Machine machine(kBudget, 1);
  machine.fixed = kCpus;
  machine.Run(300);
  EXPECT_EQ(machine.governor.period_ns(), kNsPerSecond);
}

}  // namespace
}  // namespace tributary
