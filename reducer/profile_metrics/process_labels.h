#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/profile_metrics/committed_sums.h"
#include "reducer/profile_metrics/metric_series.h"
#include "reducer/profile_metrics/metric_spec.h"
#include "reducer/store/store.h"

namespace tributary {

// Longer values of labels are cut. Names of C++ functions can have several KiB.
constexpr size_t kMetricLabelBytesMax = 256;
// Makes valid UTF-8 of at most kMetricLabelBytesMax bytes, as Prometheus requires.
std::string MetricLabelValue(std::string_view text);

// Selects processes for metrics, and finds the values of their labels. A process that the store does not know has no
// labels: a selector sees "" for each, as in queries. Used on one thread, for the samples of one scan.
class ProcessLabels {
 public:
  // Reads the processes of `runs`, which are sorted by time. `joiner` may be null: then only the labels in the store
  // are known. `joiner` must outlive the object.
  static absl::StatusOr<ProcessLabels> Read(store::StoreReader& reader, const std::vector<CommittedSums::Run>& runs,
                                            const ResourceJoiner* joiner);

  // Returns the values of the spec's labels in their order, or nullopt if the selector does not select the process.
  // Values that belong to frames are empty. Uses the attributes that the process had at `time`, which is in a run.
  std::optional<MetricSeries::LabelValues> Of(const MetricSpec& spec, store::ProcessNo process, UnixNs time);

 private:
  struct Run {
    UnixNs to;  // its end
    absl::flat_hash_map<store::ProcessNo, store::ProcessRow> rows;
    std::optional<ResourceCache> resources;
  };

  static std::string ValueOf(Run& run, std::string_view label, const store::ProcessRow& row, UnixNs time);

  std::vector<Run> runs_;  // sorted by time
};

}  // namespace tributary
