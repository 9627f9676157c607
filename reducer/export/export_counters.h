#pragma once

#include <string>

#include "base/metrics.h"

namespace tributary {

// Of records of one kind.
struct RecordCounters {
  Counter &sent, &refused, &repeated;
  Counter* expired = nullptr;     // before they were read; null: the source does not count them
  Counter* incomplete = nullptr;  // sent without facts that were looked up; null: nothing is looked up
};

// The metrics of the exporters of samples with one label. Exporters with the same label share them.
struct ExportCounters {
  ExportCounters(Metrics& metrics, const std::string& label);

  Counter &samples, &requests, &failures;
  Counter &refused_samples, &repeated_samples, &rejected_items, &dropped_strings, &left_out_samples;
  Counter &expired_chunks, &expired_samples;
  Counter &skipped_samples, &skipped_cpu_ns;
  RecordCounters events, losses, rollouts;
};

}  // namespace tributary
