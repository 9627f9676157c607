#pragma once

#include "base/metrics.h"

namespace tributary {

// The metrics of UnwindTables (docs/metrics.md).
struct UnwindMetrics {
  explicit UnwindMetrics(Metrics& metrics)
      : units_loaded(metrics.AddCounter("tributary_collector_unwind_units_loaded_total",
                                        "Units of 4 MiB of code whose unwind rows were loaded into the kernel")),
        units_evicted(metrics.AddCounter("tributary_collector_unwind_units_evicted_total",
                                         "Units of code whose unwind rows were removed from the kernel to make room "
                                         "for others")),
        units_failed(
            metrics.AddCounter("tributary_collector_unwind_units_failed_total",
                               "Units of code whose unwind rows could not be compiled; their stacks are walked by "
                               "frame pointers for a while")),
        compile_ns(metrics.AddDurationCounter("tributary_collector_unwind_compile_seconds_total",
                                              "CPU time spent on compiling unwind information")),
        bad_rows(metrics.AddCounter("tributary_collector_unwind_unsupported_rows_total",
                                    "Unwind rows whose rule the kernel's stack walk does not support: stacks end at "
                                    "their code")),
        requests_refused(metrics.AddCounter("tributary_collector_unwind_requests_refused_total",
                                            "Units of code whose unwind rows were not compiled when requested, because "
                                            "too many units were waiting")),
        executables_refused(metrics.AddCounter("tributary_collector_unwind_executables_refused_total",
                                               "Times that an executable got no unwind rows, because no page entries "
                                               "were free in the kernel's map")),
        chunks_refused(metrics.AddCounter("tributary_collector_unwind_chunks_refused_total",
                                          "Chunks of unwind rows that the kernel refused")),
        rows(metrics.AddGauge("tributary_collector_unwind_rows", "Unwind rows in the kernel")),
        rules(metrics.AddGauge("tributary_collector_unwind_rules", "Different unwind rules; the limit is 65,536")),
        chunk_bytes(metrics.AddGauge("tributary_collector_unwind_chunk_bytes",
                                     "Bytes of kernel memory for chunks of unwind rows")) {}

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
