#include "reducer/export/export_counters.h"

#include <string_view>

#include "otlp/request_counters.h"

namespace tributary {
namespace {

Counter& Add(Metrics& metrics, const std::string& label, std::string_view name, std::string_view help) {
  return metrics.AddCounter(name, help, {{"exporter", label}});
}

}  // namespace

ExportCounters::ExportCounters(Metrics& metrics, const std::string& label)
    : samples(Add(metrics, label, "tributary_export_samples_total",
                  "Samples in requests that the receiver of the export accepted, including samples of rejected "
                  "profiles or log records.")),
      requests(otlp::AcceptedRequests(metrics, label)),
      failures(otlp::FailedRequests(metrics, label)),
      refused_samples(Add(metrics, label, "tributary_export_refused_samples_total",
                          "Samples in requests that the receiver of the export refused, and that are not sent again; "
                          "the receiver's log says why.")),
      repeated_samples(Add(metrics, label, "tributary_export_repeated_samples_total",
                           "Samples that were sent again although the receiver of the export may have them: its answer "
                           "was lost, or the reducer was killed.")),
      rejected_items(Add(metrics, label, "tributary_export_rejected_items_total",
                         "Profiles or log records that the receiver of the export rejected, although it accepted the "
                         "rest of the request.")),
      dropped_strings(Add(metrics, label, "tributary_export_dropped_strings_total",
                          "Names that were replaced by an empty name, because the request of the export was full.")),
      left_out_samples(Add(metrics, label, "tributary_export_left_out_samples_total",
                           "Samples that the exporter left out of its output, because a limit of files or of the "
                           "console was reached.")),
      expired_chunks(Add(metrics, label, "tributary_export_expired_chunks_total",
                         "Stored chunks of samples that expired before the exporter read them.")),
      expired_samples(Add(metrics, label, "tributary_export_expired_samples_total",
                          "Samples that expired before the exporter read them: the receiver never gets them.")),
      skipped_samples(Add(metrics, label, "tributary_export_skipped_samples_total",
                          "Samples that the exporter skipped, because they had waited longer than --export-lag-max: "
                          "the receiver never gets them.")),
      skipped_cpu_ns(metrics.AddDurationCounter("tributary_export_skipped_cpu_seconds_total",
                                                "CPU time of the CPU samples that the exporter skipped, because they "
                                                "had waited longer than --export-lag-max.",
                                                {{"exporter", label}})),
      events{Add(metrics, label, "tributary_export_events_total",
                 "Process events in requests that the receiver of the export accepted."),
             Add(metrics, label, "tributary_export_refused_events_total",
                 "Process events in requests that the receiver of the export refused, and that are not sent again."),
             Add(metrics, label, "tributary_export_repeated_events_total",
                 "Process events that were sent again although the receiver of the export may have them."),
             &Add(metrics, label, "tributary_export_expired_events_total",
                  "Process events that expired before the exporter read them: the receiver never gets them."),
             &Add(metrics, label, "tributary_export_incomplete_events_total",
                  "Process events whose process's own attributes were not looked up, because there were too many or "
                  "because the store could not be read.")},
      losses{Add(metrics, label, "tributary_export_losses_total",
                 "Records of losses in requests that the receiver of the export accepted."),
             Add(metrics, label, "tributary_export_refused_losses_total",
                 "Records of losses in requests that the receiver of the export refused, and that are not sent again."),
             Add(metrics, label, "tributary_export_repeated_losses_total",
                 "Records of losses that were sent again although the receiver of the export may have them."),
             &Add(metrics, label, "tributary_export_expired_losses_total",
                  "Records of losses that expired before the exporter read them: the receiver never gets them.")},
      rollouts{Add(metrics, label, "tributary_export_rollouts_total",
                   "Rollouts in requests that the receiver of the export accepted."),
               Add(metrics, label, "tributary_export_refused_rollouts_total",
                   "Rollouts in requests that the receiver of the export refused, and that are not sent again."),
               Add(metrics, label, "tributary_export_repeated_rollouts_total",
                   "Rollouts that were sent again although the receiver of the export may have them.")} {}

}  // namespace tributary
