#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"
#include "kernel-collector/budget/rate_ladder.h"

namespace tributary {

// The collector's cost so far. Totals only grow; a total that shrinks counts as unchanged.
struct CpuUse {
  MonotonicNs time;
  int64_t process_ns = 0;  // CPU time of the process and its children, user and system
  int64_t bpf_ns = 0;      // run time of the BPF programs, which the kernel charges to the interrupted tasks
  int online_cpus = 1;
};

// Chooses the sampling period that keeps the collector within its share of the node's CPU time.
//
// The share holds on average over about a minute, not at every instant. Unused time is saved, up to a minute's worth. A
// burst (the first scan of all processes, a storm of new ones) takes time from the savings without a change of the
// rate. The governor starts with full savings. It judges the use in windows of 5 s:
//  - The savings are gone and the cost is still over budget: lowers the rate, by at least one step. It takes as many
//    steps as the recent mean needs if all cost came from samples.
//  - The savings are a quarter of a minute, and the recent mean would stay under 4/5 of the budget at a higher rate
//    even if all cost came from samples: raises the rate to the highest such rate.
//  - Part of the cost does not come from samples. So a higher rate may fit into the budget although the rule above
//    never chooses it. If the mean is under 4/5 of the budget, the rate is raised by one step as an attempt, after a
//    minute. If that step had to be undone, the next attempt comes after twice the wait, up to 16 minutes.
// So under a steady load, the rate settles. After that it changes only by one step for such an attempt, more and more
// rarely. After every change the rate stays for at least three windows and 20 periods, unless the budget is exceeded.
// The reason: each change discards the elapsed part of a period on every CPU, half a period on average. The samples' ns
// do not count this time.
//
// Pure: no clock, no system call. Use it on any one thread.
class CpuGovernor {
 public:
  static constexpr int64_t kWindowNs = 5 * kNsPerSecond;
  static constexpr int64_t kSavingsNs = 60 * kNsPerSecond;       // × budget × CPUs: the maximum savings
  static constexpr int64_t kRaiseSavingsNs = 15 * kNsPerSecond;  // × budget × CPUs: the minimum to raise the rate
  static constexpr int64_t kTryWaitMinNs = kNsPerMinute, kTryWaitMaxNs = 16 * kNsPerMinute;
  static constexpr double kLowerTo = 0.9, kRaiseTo = 0.8;  // shares of the budget

  struct Options {
    double budget = 0.01;   // share of the node: 0.01 = 1% of all CPUs' time; above 0; infinity never lowers
    int64_t period_ns = 0;  // the configured period, the shortest one that is ever chosen
  };
  explicit CpuGovernor(const Options& options);

  // Call it about every second; the first call begins the first window. Returns true if period_ns() has changed; the
  // caller must then set it.
  bool Feed(const CpuUse& use);

  // Sets another configured period, in force at once. The savings stay, so frequent changes gain nothing.
  void SetConfiguredPeriod(int64_t period_ns);

  int64_t period_ns() const { return ladder_.period_ns(step_); }
  bool at_lowest_rate() const { return step_ + 1 == ladder_.size(); }
  // Returns the share of the node in the last complete window; nullopt before the first one.
  std::optional<double> share() const { return share_; }

 private:
  bool Judge(double share);
  bool Lower();
  bool Raise();
  void MoveTo(size_t step);

  const double budget_;
  RateLadder ladder_;
  size_t step_ = 0;
  std::optional<CpuUse> window_start_;
  std::optional<double> share_;
  double mean_share_ = 0;         // since the last change; recent windows have more weight
  int windows_since_change_ = 0;  // number of windows in mean_share_
  int64_t since_change_ns_ = 0;
  double savings_ns_ = kSavingsNs;  // unit: ns × budget × CPUs
  int64_t try_wait_ns_ = kTryWaitMinNs;
  bool trying_ = false;  // the last change was an attempt
};

}  // namespace tributary
