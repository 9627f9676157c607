#include "intake/spool/spool_metrics.h"

namespace tributary::intake {
namespace {

Counter& Dropped(Metrics& metrics, const char* reason) {
  return metrics.AddCounter("tributary_spool_dropped_samples_total", "Spooled samples that will never be delivered.",
                            {{"reason", reason}});
}

}  // namespace

SpoolMetrics::SpoolMetrics(Metrics& metrics)
    : segments(metrics.AddGauge("tributary_spool_segments", "Segment files in the spool directory.")),
      bytes(metrics.AddGauge("tributary_spool_bytes", "Bytes of all segment files in the spool directory.")),
      samples(metrics.AddGauge("tributary_spool_samples",
                               "Samples in the spool's files; the files of delivered samples are removed later.")),
      dropped_overflow(Dropped(metrics, "spool_overflow")),
      dropped_damaged(Dropped(metrics, "spool_damaged")),
      damaged_segments(metrics.AddCounter("tributary_spool_damaged_segments_total",
                                          "Spool segments that could not be read to their end.")) {
  constexpr const char* kOperations[] = {"read", "append", "sync", "claim", "remove"};
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    failures[i] = &metrics.AddCounter("tributary_spool_failures_total", "Operations on spool files that failed.",
                                      {{"operation", kOperations[i]}});
  }
}

}  // namespace tributary::intake
