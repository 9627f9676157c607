#pragma once

#include <string>
#include <string_view>

#include "base/metrics.h"

namespace tributary {

// Adds what Prometheus clients in every language say of their process (process_cpu_seconds_total,
// process_resident_memory_bytes and so on), and tributary_build_info. All are read at scrape time, on the scraping
// thread: seven system calls or small files, some 60 µs. What cannot be read shows as NaN.
// `component`: "reducer", "kernel-collector", "k8s-collector". `proc_root`: where this process sees itself.
void AddProcessMetrics(Metrics& metrics, std::string_view component, const std::string& proc_root = "/proc");

}  // namespace tributary
