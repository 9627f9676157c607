#pragma once

#include <string>

#include "base/metrics.h"

namespace tributary {

// The metrics of the exporters of samples with one label. Exporters with the same label share them.
struct ExportCounters {
  ExportCounters(Metrics& metrics, const std::string& label);

  Counter &samples, &requests, &failures;
  Counter &refused_samples, &repeated_samples, &rejected_items, &dropped_strings, &left_out_samples;
  Counter &expired_chunks, &expired_samples;
  Counter &events, &refused_events, &repeated_events;
};

}  // namespace tributary
