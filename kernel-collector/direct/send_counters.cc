#include "kernel-collector/direct/send_counters.h"

#include <algorithm>
#include <string>

namespace tributary {

SendCounters::SendCounters(Metrics& metrics)
    : samples(metrics.AddCounter("tributary_direct_samples_total",
                                 "Samples that were sent to a receiver of OTLP, or printed, without a reducer")),
      events(metrics.AddCounter("tributary_direct_process_events_total",
                                "Process events that were sent to a receiver of OTLP logs without a reducer")),
      earlier_samples(metrics.AddCounter("tributary_direct_earlier_samples_total",
                                         "Samples among those sent that an earlier collector had left in the spool")),
      earlier_events(metrics.AddCounter("tributary_direct_earlier_process_events_total",
                                        "Process events among those sent that an earlier collector had left in the "
                                        "spool")),
      repeated_samples(metrics.AddCounter("tributary_direct_repeated_samples_total",
                                          "Samples that were sent again although the receiver may have them")),
      repeated_events(metrics.AddCounter("tributary_direct_repeated_process_events_total",
                                         "Process events that were sent again although the receiver may have them")),
      requests(metrics.AddCounter("tributary_direct_requests_total", "Requests that the receiver accepted")),
      failures(metrics.AddCounter("tributary_direct_failures_total",
                                  "Requests that failed and are sent again: the receiver cannot be reached, or is "
                                  "overloaded")),
      rejected_items(metrics.AddCounter("tributary_direct_rejected_profiles_total",
                                        "Profiles or log records that the receiver rejected from requests that it "
                                        "accepted")),
      dropped_strings(metrics.AddCounter("tributary_direct_dropped_strings_total",
                                         "Names that were left out because the request would have been too large")),
      left_out_tables(metrics.AddCounter("tributary_direct_symbol_tables_left_out_total",
                                         "Symbol tables that were left out because too many waited to be opened, "
                                         "and are made again")),
      waiting_samples(metrics.AddGauge("tributary_direct_waiting_samples", "Samples that wait to be sent")),
      waiting_events(
          metrics.AddGauge("tributary_direct_waiting_process_events", "Process events that wait to be sent")),
      queue_bytes(metrics.AddGauge("tributary_direct_queue_bytes",
                                   "Memory of the samples and process events that wait to be sent")) {
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    const std::string reason(LossReasonName(static_cast<LossReason>(i)));
    lost_samples_.push_back(&metrics.AddCounter("tributary_direct_lost_samples_total",
                                                "Samples that were lost because they could not be sent, by reason",
                                                {{"reason", reason}}));
    lost_events_.push_back(&metrics.AddCounter("tributary_direct_lost_process_events_total",
                                               "Process events that were lost because they could not be sent, by "
                                               "reason; not_taken: only OTLP logs can contain them",
                                               {{"reason", reason}}));
  }
}

SampleCounts PartOf(const SampleCounts& all, uint64_t samples) {
  SampleCounts part;
  const auto take = [&](SampleType type, uint64_t count) {
    count = std::min(count, samples);
    part.Add(type, count);
    samples -= count;
  };
  take(SampleType::kCpu, all.cpu());
  for (const auto& [type, count] : all.parts()) {
    if (type != SampleType::kProcessEvent) take(type, count);
  }
  return part;
}

}  // namespace tributary
