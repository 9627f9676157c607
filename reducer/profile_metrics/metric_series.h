#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/types.h"

namespace tributary {

// The series of one metric: a counter for each combination of label values. At most `series_max` combinations have a
// series. The series whose labels are all "(other)" counts everything else, so each sample counts in exactly one
// series.
//
// The largest combinations should have the series. So the object also watches the combinations without one, and
// Elect, which runs once a minute, lets a combination take the place of a series that it has outgrown. The removed
// series ends, and the value that it had is in no series any more: the sum over all series falls. If its combination
// gets a series again, this series begins at 0, as a counter after a restart. A value never wraps: it stops at 2^64
// - 1.
//
// A series takes about 100 bytes and its texts, and so does each combination that is watched. Thread-safe.
class MetricSeries {
 public:
  static constexpr const char* kOther = "(other)";
  // For each series, between this number and twice this number of combinations without a series are watched. If there
  // are more, the smallest ones are forgotten.
  static constexpr size_t kWatchedPerSeries = 4;

  using LabelValues = std::vector<std::string>;
  struct Weight {
    uint64_t value = 0, count = 0;  // count: of samples
  };
  using Sums = absl::flat_hash_map<LabelValues, Weight>;

  // Add and Elect read `clock`. List does not, so it may outlive the clock.
  MetricSeries(size_t series_max, const Clock& clock) : series_max_(series_max), clock_(clock) {}

  // Adds all sums at once. Returns the number of samples that were added to "(other)".
  uint64_t Add(const Sums& sums);
  // Compares the growth of combinations since the last call with that of series. A series also has half of its growth
  // before that, a quarter of the growth before, and so on. So two combinations that grow equally fast do not take
  // each other's place every minute. Returns the number of series that lost their place.
  size_t Elect();

  struct Series {
    LabelValues labels;
    uint64_t value = 0;
    UnixNs start;  // when the series appeared: its value was 0
  };
  std::vector<Series> List() const;  // in no particular order
  size_t size() const;

 private:
  struct Counted {
    uint64_t value = 0;   // since the series began
    uint64_t recent = 0;  // growth, halved by each Elect
    UnixNs start;
  };

  uint64_t AddOther(const LabelValues& labels, const Weight& weight, bool is_candidate);
  void KeepLargestCandidates();

  const size_t series_max_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<LabelValues, Counted> series_;
  absl::flat_hash_map<LabelValues, uint64_t> candidates_;  // without a series: their growth since the last Elect
  Counted other_;
  LabelValues other_labels_;  // empty: nothing was counted as other yet
};

}  // namespace tributary
