#include "intake/spool/spool_metrics.h"

namespace tributary::intake {
namespace {

SpoolMetrics::Dropped DroppedFor(Metrics& metrics, const char* reason) {
  return {metrics.AddCounter("tributary_spool_dropped_samples_total",
                             "Spooled samples that were lost before a reducer received them; spool_overflow: the spool "
                             "was full; spool_damaged: they could not be read.",
                             {{"reason", reason}}),
          metrics.AddCounter("tributary_spool_dropped_process_events_total",
                             "Spooled process events that were lost before a reducer received them; reasons as for "
                             "samples.",
                             {{"reason", reason}})};
}

}  // namespace

SpoolMetrics::SpoolMetrics(Metrics& metrics)
    : segments(metrics.AddGauge("tributary_spool_segments", "Segment files in the spool directory.")),
      bytes(metrics.AddGauge("tributary_spool_bytes", "Bytes of all segment files in the spool directory.")),
      samples(metrics.AddGauge(
          "tributary_spool_samples",
          "Samples in the spool's files. A file is removed when a reducer has acknowledged all its samples.")),
      overflow(DroppedFor(metrics, "spool_overflow")),
      damaged(DroppedFor(metrics, "spool_damaged")),
      damaged_segments(metrics.AddCounter("tributary_spool_damaged_segments_total",
                                          "Segment files of the spool that could not be read to their end.")) {
  constexpr const char* kOperations[] = {"read", "append", "sync", "claim", "remove"};
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    failures[i] =
        &metrics.AddCounter("tributary_spool_failures_total", "Failed operations on spool files, by operation.",
                            {{"operation", kOperations[i]}});
  }
}

}  // namespace tributary::intake
