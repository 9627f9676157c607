#include <utility>

#include "kernel-collector/collector_core.h"

namespace tributary {

void CollectorCore::SetOptOuts(absl::flat_hash_set<std::string> containers) {
  if (containers != opt_outs_) {
    LogInfo("the containers of this node that opted out of profiling have changed count={}", containers.size());
  }
  events_.SetOptOuts(containers);
  opt_outs_ = std::move(containers);
}

// Counts the sample as lost and returns true if the container of its process opted out. Call it when the container is
// known.
bool CollectorCore::DropsOptedOut(const SampleRecord& record, const ProcessRun& run) {
  if (opt_outs_.empty() || !opt_outs_.contains(run.container_id)) return false;
  SampleCounts one;
  one.Add(record.type(), 1);
  AddLost(LossReason::kOptedOut, one);
  opted_out_.Add();
  return true;
}

}  // namespace tributary
