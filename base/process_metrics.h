#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"

namespace tributary {

// Adds the process metrics of Prometheus clients in every language (process_cpu_seconds_total,
// process_resident_memory_bytes and so on), and tributary_build_info. All are read at scrape time, on the scraping
// thread: seven system calls or small files, about 60 µs. A value that cannot be read shows as NaN. `component`:
// "reducer", "kernel-collector", "k8s-collector". `proc_root`: the procfs where this process finds itself.
void AddProcessMetrics(Metrics& metrics, std::string_view component, const std::string& proc_root = "/proc");

}  // namespace tributary
