#pragma once

#include <vector>

#include "base/metrics.h"
#include "profile/accounting.h"

namespace tributary {

// The metrics of a BatchSender (docs/metrics.md).
struct SendCounters {
  explicit SendCounters(Metrics& metrics);

  Counter &samples, &events;                  // the receiver accepted
  Counter &earlier_samples, &earlier_events;  // of these: from the spool of an earlier collector
  Counter &repeated_samples, &repeated_events;
  Counter &requests, &failures, &rejected_items, &dropped_strings;
  Counter& left_out_tables;
  Gauge &waiting_samples, &waiting_events, &queue_bytes;

  void Lost(LossReason reason, const SampleCounts& counts) {
    lost_samples_[static_cast<size_t>(reason)]->Add(counts.total());
    lost_events_[static_cast<size_t>(reason)]->Add(counts.events());
  }
  void Earlier(const SampleCounts& counts) {
    earlier_samples.Add(counts.total());
    earlier_events.Add(counts.events());
  }
  void Repeated(const SampleCounts& counts) {
    repeated_samples.Add(counts.total());
    repeated_events.Add(counts.events());
  }

 private:
  std::vector<Counter*> lost_samples_, lost_events_;  // by reason
};

// Returns counts of `samples` samples, at most `all`. A printer of text does not say of which types the samples are
// that it left out. CPU samples come first.
SampleCounts PartOf(const SampleCounts& all, uint64_t samples);

}  // namespace tributary
