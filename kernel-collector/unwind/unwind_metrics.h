#pragma once

#include "base/metrics.h"

namespace tributary {

// The metrics of UnwindTables (docs/metrics.md).
struct UnwindMetrics {
  explicit UnwindMetrics(Metrics& metrics)
      : units_loaded(metrics.AddCounter("tributary_collector_unwind_units_loaded_total",
                                        "4 MiB units of code whose unwind rows were loaded into the kernel")),
        units_evicted(metrics.AddCounter(
            "tributary_collector_unwind_units_evicted_total",
            "4 MiB units of code whose unwind rows were removed from the kernel to make room for other units")),
        units_failed(metrics.AddCounter("tributary_collector_unwind_units_failed_total",
                                        "4 MiB units of code whose unwind rows could not be compiled or loaded; frames "
                                        "in this code are walked by frame pointers for a minute")),
        compile_ns(
            metrics.AddDurationCounter("tributary_collector_unwind_compile_seconds_total",
                                       "CPU time that was spent on compiling unwind information to unwind rows")),
        bad_rows(metrics.AddCounter("tributary_collector_unwind_unsupported_rows_total",
                                    "Unwind rows with a rule that the kernel's stack walk does not support; stacks end "
                                    "at the code of these rows")),
        requests_refused(metrics.AddCounter(
            "tributary_collector_unwind_requests_refused_total",
            "How often a request to compile a 4 MiB unit of code was refused, because too many units were waiting")),
        executables_refused(metrics.AddCounter("tributary_collector_unwind_executables_refused_total",
                                               "How often an executable got no unwind rows, because the kernel's map "
                                               "of code pages was full, or because the executable's code spans 1 GiB "
                                               "or more")),
        chunks_refused(metrics.AddCounter("tributary_collector_unwind_chunks_refused_total",
                                          "How often the kernel refused to allocate memory for unwind rows")),
        rows(metrics.AddGauge("tributary_collector_unwind_rows", "Number of unwind rows in the kernel")),
        rules(metrics.AddGauge("tributary_collector_unwind_rules",
                               "Number of different unwind rules; the limit is 65,536")),
        chunk_bytes(
            metrics.AddGauge("tributary_collector_unwind_chunk_bytes", "Kernel memory for unwind rows, in bytes")) {}

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
