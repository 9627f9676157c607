#include "kernel-collector/budget/cpu_governor.h"

#include <algorithm>

#include "base/status.h"

namespace tributary {
namespace {

constexpr double kNewWindowWeight = 0.25;  // the mean forgets within about four windows
constexpr int kWindowsBeforeRaise = 3;
constexpr int64_t kPeriodsBeforeRaise = 20;

double Growth(int64_t before_ns, int64_t now_ns) {
  return static_cast<double>(std::max<int64_t>(now_ns - before_ns, 0));
}

}  // namespace

CpuGovernor::CpuGovernor(const Options& options) : budget_(options.budget), ladder_(options.period_ns) {
  TRIBUTARY_CHECK(options.budget > 0);
}

bool CpuGovernor::Feed(const CpuUse& use) {
  if (!window_start_) {
    window_start_ = use;
    return false;
  }
  int64_t elapsed_ns = use.time.value - window_start_->time.value;
  if (elapsed_ns < kWindowNs) return false;
  double cost_ns = Growth(window_start_->process_ns, use.process_ns) + Growth(window_start_->bpf_ns, use.bpf_ns);
  double share = cost_ns / static_cast<double>(elapsed_ns) / std::max(use.online_cpus, 1);
  window_start_ = use;

  since_change_ns_ += elapsed_ns;
  savings_ns_ += static_cast<double>(elapsed_ns) * (1 - share / budget_);
  savings_ns_ = std::min<double>(savings_ns_, kSavingsNs);
  bool changed = Judge(share);
  // Overspending is not owed: a lower rate saves for the next seconds, it does not pay back.
  savings_ns_ = std::max<double>(savings_ns_, 0);
  return changed;
}

void CpuGovernor::SetConfiguredPeriod(int64_t period_ns) {
  ladder_ = RateLadder(period_ns);
  MoveTo(0);
}

bool CpuGovernor::Judge(double share) {
  share_ = share;
  mean_share_ = windows_since_change_ == 0 ? share : mean_share_ + kNewWindowWeight * (share - mean_share_);
  ++windows_since_change_;
  if (trying_ && since_change_ns_ >= kTryWaitMaxNs) {  // the attempt was right
    trying_ = false;
    try_wait_ns_ = kTryWaitMinNs;
  }
  return share > budget_ ? Lower() : Raise();
}

bool CpuGovernor::Lower() {
  if (savings_ns_ > 0 || at_lowest_rate()) return false;
  size_t step = step_ + 1;
  while (step + 1 < ladder_.size() && mean_share_ * ladder_.CostRatio(step_, step) > kLowerTo * budget_) ++step;
  if (trying_) try_wait_ns_ = std::min(2 * try_wait_ns_, kTryWaitMaxNs);
  MoveTo(step);
  return true;
}

bool CpuGovernor::Raise() {
  if (step_ == 0 || savings_ns_ < kRaiseSavingsNs || mean_share_ > kRaiseTo * budget_) return false;
  if (windows_since_change_ < kWindowsBeforeRaise || since_change_ns_ < kPeriodsBeforeRaise * period_ns()) return false;
  size_t step = step_;
  while (step > 0 && mean_share_ * ladder_.CostRatio(step_, step - 1) <= kRaiseTo * budget_) --step;
  bool is_try = step == step_;
  if (is_try && since_change_ns_ < try_wait_ns_) return false;
  if (is_try) {
    --step;
  } else {
    try_wait_ns_ = kTryWaitMinNs;
  }
  MoveTo(step);
  trying_ = is_try;
  return true;
}

void CpuGovernor::MoveTo(size_t step) {
  step_ = step;
  trying_ = false;
  windows_since_change_ = 0;
  since_change_ns_ = 0;
}

}  // namespace tributary
