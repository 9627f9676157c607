#include "intake/server/server_metrics.h"

#include <string>

namespace tributary::intake {

ServerMetrics::ServerMetrics(Metrics& metrics)
    : sessions(metrics.AddGauge("tributary_intake_sessions", "Collectors connected")),
      received_bytes(metrics.AddCounter("tributary_intake_received_bytes_total", "Bytes received from collectors")),
      batches(metrics.AddCounter("tributary_intake_batches_total", "Batches accepted")),
      samples(metrics.AddCounter("tributary_intake_samples_total", "Samples accepted")),
      duplicates(metrics.AddCounter("tributary_intake_duplicate_batches_total", "Batches sent again and dropped")),
      stale_batches(metrics.AddCounter("tributary_intake_stale_batches_total",
                                       "Frames of a dictionary generation that was given up; they are sent again")),
      need_dictionary(metrics.AddCounter("tributary_intake_need_dictionary_total", "Dictionary generations given up")),
      stalls(metrics.AddCounter("tributary_intake_stalls_total", "Times that reading paused because a queue was full")),
      throttles(metrics.AddCounter("tributary_intake_throttles_total",
                                   "Times that reading paused because a node was over its rate")),
      unknown_values(metrics.AddCounter("tributary_intake_unknown_values_total",
                                        "Enum values of a later release, read as unknown")),
      unknown_frames(
          metrics.AddCounter("tributary_intake_unknown_frames_total", "Frames of a type of a later release, skipped")) {
  for (size_t i = 0; i < kRefusalCount; ++i) {
    refusals[i] = &metrics.AddCounter("tributary_intake_refusals_total",
                                      "Connections and messages that the intake refused, by reason",
                                      {{"reason", std::string(RefusalName(static_cast<Refusal>(i)))}});
  }
}

}  // namespace tributary::intake
