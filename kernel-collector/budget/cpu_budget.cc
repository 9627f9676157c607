#include "kernel-collector/budget/cpu_budget.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>

#include "base/status.h"

namespace tributary {
namespace {

double Hz(int64_t period_ns) { return static_cast<double>(kNsPerSecond) / static_cast<double>(period_ns); }

}  // namespace

int OnlineCpuCount() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

struct CpuBudget::Shown {
  std::atomic<int64_t> process_ns{0}, period_ns{0};
  std::atomic<double> share{0};
};

CpuBudget::CpuBudget(const Options& options, const Clock& clock, Metrics& metrics, Callbacks callbacks)
    : options_(options),
      clock_(clock),
      callbacks_(std::move(callbacks)),
      shown_(std::make_shared<Shown>()),
      lowered_(metrics.AddCounter("tributary_collector_rate_changes_total",
                                  "How often the sampling rate was lowered or raised, by direction",
                                  {{"direction", "lowered"}})),
      raised_(metrics.AddCounter("tributary_collector_rate_changes_total",
                                 "How often the sampling rate was lowered or raised, by direction",
                                 {{"direction", "raised"}})),
      governor_({.budget = options.budget, .period_ns = options.period_ns}),
      period_ns_(options.period_ns) {
  shown_->period_ns = period_ns_;
  metrics.AddCallback("tributary_collector_sample_rate_hz",
                      "Current sampling rate: samples per second on each busy CPU; --cpu-budget may have lowered it",
                      /*is_counter=*/false, {}, [shown = shown_] { return Hz(shown->period_ns); });
  metrics.AddCallback("tributary_collector_cpu_share",
                      "Share of the node's CPU time that the collector and its BPF programs used during the last "
                      "complete measurement of 5 s; 0 before the first measurement",
                      /*is_counter=*/false, {}, [shown = shown_] { return shown->share.load(); });
  metrics.AddCallback(
      "tributary_collector_process_cpu_seconds_total", "CPU time of the collector's process and its child processes",
      /*is_counter=*/true, {}, [shown = shown_] { return static_cast<double>(shown->process_ns) / kNsPerSecond; });
}

void CpuBudget::Tick() {
  process_ns_ = std::max(process_ns_, options_.process_cpu_ns());
  CpuUse use{.time = clock_.Monotonic(),
             .process_ns = process_ns_,
             .bpf_ns = static_cast<int64_t>(callbacks_.bpf_run_ns()),
             .online_cpus = options_.online_cpus()};
  governor_.Feed(use);
  shown_->process_ns = use.process_ns;
  shown_->share = governor_.share().value_or(0);
  if (governor_.period_ns() != period_ns_) Change();
}

void CpuBudget::SetConfiguredPeriod(int64_t period_ns) {
  governor_.SetConfiguredPeriod(period_ns);
  if (governor_.period_ns() != period_ns_) Change();
}

void CpuBudget::Change() {
  int64_t period_ns = governor_.period_ns();
  if (absl::Status status = callbacks_.set_period(period_ns); !status.ok()) {
    if (uint64_t held; failure_log_.Allow(clock_.Monotonic(), &held)) {
      LogWarning("cannot change the sampling rate rate_hz={:.2f} wanted_hz={:.2f} cause=\"{}\" suppressed={}",
                 Hz(period_ns_), Hz(period_ns), Message(status), held);
    }
    return;
  }
  bool lowered = period_ns > period_ns_;
  (lowered ? lowered_ : raised_).Add();
  LogInfo("sampling rate {} rate_hz={:.2f} was_hz={:.2f} cpu_share={:.3f}% cpu_budget={:g}%{}",
          lowered ? "lowered" : "raised", Hz(period_ns), Hz(period_ns_), 100 * governor_.share().value_or(0),
          100 * options_.budget, lowered && governor_.at_lowest_rate() ? " lowest=true" : "");
  period_ns_ = period_ns;
  shown_->period_ns = period_ns;
}

}  // namespace tributary
