#include "intake/server/server_metrics.h"

#include <string>

namespace tributary::intake {

ServerMetrics::ServerMetrics(Metrics& metrics)
    : sessions(metrics.AddGauge("tributary_intake_sessions", "Connected collectors")),
      received_bytes(metrics.AddCounter("tributary_intake_received_bytes_total",
                                        "Bytes received on connections to the intake port, including refused "
                                        "connections")),
      batches(metrics.AddCounter("tributary_intake_batches_total",
                                 "Batches received from collectors, before they are stored")),
      samples(metrics.AddCounter("tributary_intake_samples_total",
                                 "Samples received from collectors, before they are stored")),
      events(metrics.AddCounter("tributary_intake_process_events_total",
                                "Process events received from collectors, before they are stored; a sum counts the "
                                "events that it stands for")),
      duplicates(metrics.AddCounter(
          "tributary_intake_duplicate_batches_total",
          "Batches that a collector sent again, and that the reducer dropped because they had arrived before")),
      stale_batches(metrics.AddCounter("tributary_intake_stale_batches_total",
                                       "Messages that were dropped, because the reducer had already discarded their "
                                       "dictionary; collectors send them again")),
      need_dictionary(metrics.AddCounter(
          "tributary_intake_need_dictionary_total",
          "Times that the reducer discarded a collector's dictionary; the collector then sends its definitions again")),
      stalls(metrics.AddCounter("tributary_intake_stalls_total",
                                "Times that a batch did not fit into the queue of the store writer, or would have "
                                "exceeded its node's share of this queue; reading from the collector pauses "
                                "meanwhile")),
      work(metrics.AddCounter("tributary_intake_work_total",
                              "Work of receiving data, in units of about 0.15 µs: samples, process events and "
                              "definitions, and the bytes from which they were decoded")),
      yields(metrics.AddCounter("tributary_intake_yields_total",
                                "Times that received data of a connection waited for other connections, because the "
                                "connection had used the event loop for about 5 ms")),
      unknown_values(metrics.AddCounter("tributary_intake_unknown_values_total",
                                        "Received values that only a later release knows, for example stack endings or "
                                        "kinds of frames")),
      unknown_frames(metrics.AddCounter("tributary_intake_unknown_frames_total",
                                        "Messages of a type that only a later release knows; they were skipped")) {
  for (size_t i = 0; i < kNodeRateCount; ++i) {
    throttles[i] = &metrics.AddCounter("tributary_intake_throttles_total",
                                       "Times that reading from a node paused, because the node had exceeded "
                                       "--intake-node-bytes-per-second, --intake-node-work-per-second or "
                                       "--intake-node-generations-per-second",
                                       {{"reason", std::string(NodeRateName(static_cast<NodeRate>(i)))}});
  }
  for (size_t i = 0; i < kRefusalCount; ++i) {
    refusals[i] = &metrics.AddCounter("tributary_intake_refusals_total",
                                      "Connections and messages that the intake refused, by reason",
                                      {{"reason", std::string(RefusalName(static_cast<Refusal>(i)))}});
  }
}

}  // namespace tributary::intake
