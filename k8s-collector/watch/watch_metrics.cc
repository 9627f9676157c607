#include "k8s-collector/watch/watch_metrics.h"

namespace tributary {

WatchMetrics::WatchMetrics(Metrics& metrics)
    : lists(metrics.AddCounter("tributary_k8s_lists_total", "How often k8s-collector listed all objects of a kind.")),
      watches(metrics.AddCounter("tributary_k8s_watches_total",
                                 "Watch requests that k8s-collector sent to the API server.")),
      events(metrics.AddCounter("tributary_k8s_events_total",
                                "Changes of objects that the API server's watches reported.")),
      malformed_objects(metrics.AddCounter("tributary_k8s_objects_dropped_total",
                                           "Objects from the API server that could not be used, by reason.",
                                           {{"reason", "malformed"}})),
      too_large_objects(metrics.AddCounter("tributary_k8s_objects_dropped_total",
                                           "Objects from the API server that could not be used, by reason.",
                                           {{"reason", "too_large"}})),
      left_out(metrics.AddCounter("tributary_k8s_fields_left_out_total",
                                  "Labels, annotations, owners and containers that were left out, because they "
                                  "exceeded the limits for one object.")) {
  constexpr std::array<const char*, kWatchFailureCount> kNames = {
      "connection", "silent", "unauthorized", "forbidden", "not_served", "expired", "throttled", "server", "malformed"};
  for (size_t i = 0; i < kNames.size(); ++i) {
    failures[i] = &metrics.AddCounter("tributary_k8s_failures_total", "Failed requests to the API server, by reason.",
                                      {{"reason", kNames[i]}});
  }
}

}  // namespace tributary
