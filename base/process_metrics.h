#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"

namespace tributary {

// Adds tributary_build_info, and the process metrics that all Prometheus client libraries have
// (process_cpu_seconds_total, process_resident_memory_bytes and so on). The start time is read once, in this function.
// Each call of Metrics::PrometheusText reads the other process metrics again, on the caller's thread: six system calls
// or small files, about 60 µs in total. A value that cannot be read is NaN. `component`: "reducer", "kernel-collector"
// or "k8s-collector".
// `proc_root`: where a procfs is mounted in which `self` is this process.
void AddProcessMetrics(Metrics& metrics, std::string_view component, const std::string& proc_root = "/proc");

}  // namespace tributary
