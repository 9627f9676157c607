#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"
#include "kernel-collector/budget/rate_ladder.h"

namespace tributary {

// The CPU time that the collector has used so far. A total that has become smaller counts as unchanged.
struct CpuUse {
  MonotonicNs time;
  int64_t process_ns = 0;  // CPU time of the process and its children, user and system
  int64_t bpf_ns = 0;      // run time of the BPF programs, which the kernel charges to the interrupted tasks
  int online_cpus = 1;
};

// Chooses the sampling period that keeps the collector's CPU time within its budget, a share of the node's CPU time.
//
// The budget holds on average over about a minute, not at every instant. Unused budget is saved, up to the budget of
// one minute. A burst of work, such as the first scan of all processes, uses up savings, and does not change the
// sampling rate at once. The governor starts with full savings. It applies these rules after each window of 5 s:
//  - If there are no savings left and the window's cost was over budget, it lowers the rate by at least one step. It
//    lowers the rate so far that the recent mean cost would fall to 9/10 of the budget, if the cost were proportional
//    to the rate.
//  - If the savings are at least the budget of 15 s, it may raise the rate. It chooses the highest rate at which the
//    recent mean cost would stay within 4/5 of the budget, if the cost were proportional to the rate.
//  - Part of the cost does not depend on the rate. So a higher rate may fit into the budget although the rule above
//    does not choose it. With the same savings, and a mean cost within 4/5 of the budget, the governor raises the rate
//    by one step as an attempt, at the earliest one minute after the last change. If the governor has to lower the rate
//    again, the wait before the next attempt doubles, up to 16 minutes.
// So under a steady load, the rate settles. After that, it changes only for such attempts, which become rare. After a
// change, the governor does not raise the rate for at least three windows and 20 periods. The reason: each change
// discards the elapsed part of the current period on every CPU, half a period on average. The values of the samples
// (ns) do not contain this time.
//
// Reads no clock and makes no system calls. Not thread-safe.
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
  // caller must then apply the new period.
  bool Feed(const CpuUse& use);

  // Sets another configured period, and chooses it at once. Keeps the savings as they are, so frequent calls do not get
  // more CPU time.
  void SetConfiguredPeriod(int64_t period_ns);

  int64_t period_ns() const { return ladder_.period_ns(step_); }
  bool at_lowest_rate() const { return step_ + 1 == ladder_.size(); }
  // Returns the share of the node's CPU time that the collector used in the last complete window; nullopt if no window
  // is complete.
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
