#pragma once

#include <cstdint>

namespace tributary {

// CPU time in user mode and in the kernel, in ns.
struct CpuTimes {
  uint64_t user_ns = 0, system_ns = 0;

  friend bool operator==(const CpuTimes&, const CpuTimes&) = default;
};

// Converts the kernel's raw times of a process to the times that getrusage(2) and wait4(2) report. Most kernels measure
// `user_ns` and `system_ns` only by the timer's ticks, but measure the total, `runtime_ns`, exactly. So the total is
// split in the ratio of the raw times. If the raw system time is 0, the whole total is user time, as in the kernel,
// also if both raw times are 0 (a process that no tick has hit). If `runtime_ns` is 0, returns the raw times.
//
// Source: cputime_adjust in kernel/sched/cputime.c.
CpuTimes SplitRuntime(CpuTimes raw, uint64_t runtime_ns);

}  // namespace tributary
