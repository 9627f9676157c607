#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"

namespace tributary {

// Adds the process metrics of Prometheus clients in every language (process_cpu_seconds_total,
// process_resident_memory_bytes and so on), and tributary_build_info. The start time is read once, in this function.
// All other values are read at scrape time, on the scraping thread: six system calls or small files, about 60 µs. A
// value that cannot be read shows as NaN. `component`: "reducer", "kernel-collector", "k8s-collector". `proc_root`: a
// procfs in which `self` is this process.
void AddProcessMetrics(Metrics& metrics, std::string_view component, const std::string& proc_root = "/proc");

}  // namespace tributary
