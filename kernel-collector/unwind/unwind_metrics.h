#pragma once

#include "base/metrics.h"

namespace tributary {

// The metrics of UnwindTables (docs/metrics.md).
struct UnwindMetrics {
  explicit UnwindMetrics(Metrics& metrics)
      : units_loaded(metrics.AddCounter("tributary_collector_unwind_units_loaded_total",
                                        "4 MiB units of code with unwind rows that were loaded into the kernel")),
        units_evicted(metrics.AddCounter("tributary_collector_unwind_units_evicted_total",
                                         "units removed to make room for others")),
        units_failed(
            metrics.AddCounter("tributary_collector_unwind_units_failed_total",
                               "units that could not be compiled and are walked by frame pointers for a while")),
        compile_ns(metrics.AddDurationCounter("tributary_collector_unwind_compile_seconds_total",
                                              "CPU time spent on compiling unwind information")),
        bad_rows(metrics.AddCounter("tributary_collector_unwind_unsupported_rows_total",
                                    "compiled rows that unwind rules cannot express: stacks end there")),
        requests_refused(metrics.AddCounter("tributary_collector_unwind_requests_refused_total",
                                            "units that were requested while too many were waiting")),
        executables_refused(metrics.AddCounter("tributary_collector_unwind_executables_refused_total",
                                               "times that no page entries were free for an executable")),
        chunks_refused(metrics.AddCounter("tributary_collector_unwind_chunks_refused_total",
                                          "chunks of rows that the kernel refused")),
        rows(metrics.AddGauge("tributary_collector_unwind_rows", "unwind rows in the kernel")),
        rules(metrics.AddGauge("tributary_collector_unwind_rules", "different unwind rules; the limit is 65,536")),
        chunk_bytes(metrics.AddGauge("tributary_collector_unwind_chunk_bytes", "kernel memory for chunks of rows")) {}

  Counter& units_loaded;
  Counter& units_evicted;
  Counter& units_failed;
  Counter& compile_ns;
  Counter& bad_rows;
  Counter& requests_refused;
  Counter& executables_refused;
  Counter& chunks_refused;
  Gauge& rows;
  Gauge& rules;
  Gauge& chunk_bytes;
};

}  // namespace tributary
