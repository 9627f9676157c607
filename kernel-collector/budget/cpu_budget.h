#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "kernel-collector/budget/cpu_governor.h"
#include "kernel-collector/budget/process_cpu.h"

namespace tributary {

int OnlineCpuCount();

// Measures the collector's CPU time, reports it as metrics, and sets the sampling period that the CpuGovernor chooses.
// Use it on one thread. Costs a few system calls per second.
class CpuBudget {
 public:
  struct Options {
    double budget = 0.01;   // as CpuGovernor::Options::budget
    int64_t period_ns = 0;  // the configured period
    std::function<int64_t()> process_cpu_ns = ProcessCpuNs;
    std::function<int()> online_cpus = OnlineCpuCount;
  };
  struct Callbacks {
    std::function<uint64_t()> bpf_run_ns;                       // the total so far
    std::function<absl::Status(int64_t period_ns)> set_period;  // called again after an error
  };

  CpuBudget(const Options& options, const Clock& clock, Metrics& metrics, Callbacks callbacks);

  // Call it every second.
  void Tick();

  // See CpuGovernor::SetConfiguredPeriod.
  void SetConfiguredPeriod(int64_t period_ns);

  int64_t period_ns() const { return period_ns_; }  // the period in force

 private:
  // The values of the metrics. They are shared, because metrics may be read after this object was destroyed.
  struct Shown;

  void Change();

  const Options options_;
  const Clock& clock_;
  const Callbacks callbacks_;
  std::shared_ptr<Shown> shown_;
  Counter& lowered_;
  Counter& raised_;
  CpuGovernor governor_;
  int64_t period_ns_;
  int64_t process_ns_ = 0;  // never shrinks
  LogLimit failure_log_{kNsPerMinute};
};

}  // namespace tributary
