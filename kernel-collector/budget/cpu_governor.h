#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "base/types.h"
#include "kernel-collector/budget/rate_ladder.h"

namespace tributary {

// What the collector has cost so far. Totals only grow; one that shrinks counts as unchanged.
struct CpuUse {
  MonotonicNs time;
  int64_t process_ns = 0;  // CPU time of the process and its children, user and system
  int64_t bpf_ns = 0;      // run time of the BPF programs, which the kernel charges to whom they interrupt
  int online_cpus = 1;
};

// Chooses the sampling period that keeps the collector within its share of the node's CPU time.
//
// The share holds on average over about a minute, not at every instant: what is not used is saved, up to a minute's
// worth, and a burst (the first scan of all processes, a storm of new ones) takes it from the savings without touching
// the rate. It starts with full savings. Use is judged in windows of 5 s:
//  - savings gone and still over budget → lowered, as many steps as the recent mean asks for if all cost came from
//    samples, at least one;
//  - savings of a quarter of a minute, and the recent mean would stay under 4/5 of the budget at a higher rate even if
//    all cost came from samples → raised to the highest such rate;
//  - part of the cost does not come from samples, so a higher rate can be affordable that this rule would never take:
//  with
//    the mean under 4/5 of the budget, one step is tried after a minute; if that had to be undone, the next try comes
//    after twice the wait, up to 16 minutes.
// So a steady load never moves the rate by more than one step once it has settled, and that ever more rarely. After
// every change the rate stays for at least three windows and 20 periods, unless the budget is broken: with each change
// the part of a period that has passed on a CPU, half of one on average, goes uncounted in the samples' ns.
//
// Pure: no clock, no system call. Any one thread.
class CpuGovernor {
 public:
  static constexpr int64_t kWindowNs = 5 * kNsPerSecond;
  static constexpr int64_t kSavingsNs = 60 * kNsPerSecond;       // × budget × CPUs: the most that is saved
  static constexpr int64_t kRaiseSavingsNs = 15 * kNsPerSecond;  // × budget × CPUs: the least to raise the rate with
  static constexpr int64_t kTryWaitMinNs = kNsPerMinute, kTryWaitMaxNs = 16 * kNsPerMinute;
  static constexpr double kLowerTo = 0.9, kRaiseTo = 0.8;  // of the budget

  struct Options {
    double budget = 0.01;   // share of the node: 0.01 = 1% of all CPUs' time; above 0; infinity never lowers
    int64_t period_ns = 0;  // the configured one, the shortest that is ever chosen
  };
  explicit CpuGovernor(const Options& options);

  // Every second or so; the first call begins the first window. True: period_ns() has changed and wants to be set.
  bool Feed(const CpuUse& use);

  // Another configured period, which is in force at once. What is saved stays: who changes it often gains nothing.
  void SetConfiguredPeriod(int64_t period_ns);

  int64_t period_ns() const { return ladder_.period_ns(step_); }
  bool at_lowest_rate() const { return step_ + 1 == ladder_.size(); }
  // Of the node, in the window that ended last; nullopt before.
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
  double mean_share_ = 0;         // since the last change, recent windows weigh more
  int windows_since_change_ = 0;  // that mean_share_ is of
  int64_t since_change_ns_ = 0;
  double savings_ns_ = kSavingsNs;  // in ns of the whole budget
  int64_t try_wait_ns_ = kTryWaitMinNs;
  bool trying_ = false;  // the last change was a try
};

}  // namespace tributary
