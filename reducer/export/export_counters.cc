#include "reducer/export/export_counters.h"

#include <fmt/format.h>

#include <string_view>

namespace tributary {
namespace {

Counter& Add(Metrics& metrics, const std::string& label, std::string_view name, std::string_view help) {
  return metrics.AddCounter(fmt::format("tributary_export_{}_total", name), help, {{"exporter", label}});
}

}  // namespace

Counter& AcceptedRequests(Metrics& metrics, const std::string& label) {
  return Add(metrics, label, "requests", "Requests that the receiver of the export accepted.");
}

Counter& FailedRequests(Metrics& metrics, const std::string& label) {
  return Add(metrics, label, "failures",
             "Requests to the receiver of the export that failed and are sent again; if the number grows, check the "
             "receiver.");
}

ExportCounters::ExportCounters(Metrics& metrics, const std::string& label)
    : samples(Add(metrics, label, "samples",
                  "Samples in requests that the receiver of the export accepted, including samples of rejected "
                  "profiles or log records.")),
      requests(AcceptedRequests(metrics, label)),
      failures(FailedRequests(metrics, label)),
      refused_samples(Add(metrics, label, "refused_samples",
                          "Samples in requests that the receiver of the export refused, and that are not sent again; "
                          "the receiver's log says why.")),
      repeated_samples(Add(metrics, label, "repeated_samples",
                           "Samples that were sent again although the receiver of the export may have them: its answer "
                           "was lost, or the reducer was killed.")),
      rejected_items(Add(metrics, label, "rejected_items",
                         "Profiles or log records that the receiver of the export rejected, although it accepted the "
                         "rest of the request.")),
      dropped_strings(Add(metrics, label, "dropped_strings",
                          "Names that were replaced by an empty name, because the request of the export was full.")),
      expired_chunks(Add(metrics, label, "expired_chunks",
                         "Stored chunks of samples that expired before the exporter read them.")),
      expired_samples(Add(metrics, label, "expired_samples",
                          "Samples that expired before the exporter read them: the receiver never gets them.")),
      events(Add(metrics, label, "events", "Process events in requests that the receiver of the export accepted.")),
      refused_events(Add(metrics, label, "refused_events",
                         "Process events in requests that the receiver of the export refused, and that are not sent "
                         "again.")),
      repeated_events(Add(metrics, label, "repeated_events",
                          "Process events that were sent again although the receiver of the export may have them.")) {}

}  // namespace tributary
