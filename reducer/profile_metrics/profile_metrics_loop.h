#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/profile_metrics/committed_sums.h"
#include "reducer/profile_metrics/metric_series.h"
#include "reducer/profile_metrics/metric_spec.h"
#include "reducer/query/demangle_cache.h"
#include "reducer/store/store.h"
#include "symbols/frame_symbolizer.h"

namespace tributary {

// Counts committed samples for the metrics of --metric, in passes over all shards. It begins with the samples that are
// committed after its construction, and counts each sample once, also a sample that arrives hours late. All metrics
// share one scan of the samples. Queries per minute would cost less for each sample, because they read sums. But they
// would miss samples that arrive after their minute was counted, and a fleet always has a node that was away.
//
// Sums wait for `hold_ns` before their labels are looked up, because the metadata and symbols of new processes arrive
// after their first samples. If more than kHeldSumsMax sums of a shard wait, the oldest do not wait any longer: then
// one node with very many different stacks also shortens the wait for the other nodes of its shard.
//
// The counters are in memory only: after a restart, they begin at 0. Prometheus expects this of counters.
//
// ProfileMetricsLoop has no thread of its own and never sleeps: ProfileMetrics calls it. All borrowed objects must
// outlive it. Its metrics stay readable as long as the Metrics object exists.
class ProfileMetricsLoop {
 public:
  static constexpr size_t kScanRowsMax = 50'000;   // a scan ends after the chunk that reaches this number of samples
  static constexpr size_t kHeldSumsMax = 100'000;  // of one shard; 7.2 MB with one more scan
  static constexpr int64_t kPollNs = kNsPerSecond, kElectNs = kNsPerMinute;

  struct Options {
    std::vector<MetricSpec> specs;
    size_t series_max = 1'000;               // of one metric
    size_t total_series_max = 10'000;        // of all metrics, divided equally among them
    const ResourceJoiner* joiner = nullptr;  // null: only the labels in the store are known
    int64_t hold_ns = 10 * kNsPerSecond;
  };
  ProfileMetricsLoop(Options options, store::Store& store, SymbolLookup symbols, const Clock& clock, Metrics& metrics);

  // Makes one pass over the shards. Returns the time until the next pass in ns: 0 if there are more samples to count.
  int64_t RunOnce();
  // Makes the RunOnce that is in progress return soon. Any thread may call it.
  void Cancel() { cancelled_ = true; }

 private:
  struct Metric {
    MetricSpec spec;
    std::shared_ptr<MetricSeries> series;  // also owned by the callback that shows it
    Counter &samples, &others, &replaced;
  };
  struct Waiting {
    CommittedSums committed;
    MonotonicNs read_at;
  };
  struct Feed {
    uint32_t shard = 0;
    std::optional<store::Cursor> read_to;  // nullopt: the shard could not be read yet
    std::deque<Waiting> waiting;           // were read, and are not counted yet; oldest first
    size_t waiting_sums = 0;
  };

  void AddMetric(MetricSpec spec, size_t series_max, Metrics& metrics);
  void AddFeeds();
  absl::StatusOr<std::unique_ptr<store::StoreReader>> Open(const Feed& feed);
  absl::Status Begin(Feed& feed);
  absl::StatusOr<bool> Advance(Feed& feed);
  absl::StatusOr<bool> Read(Feed& feed);
  absl::Status CountDue(Feed& feed);
  absl::Status Count(const Feed& feed, const CommittedSums& committed);
  void Elect();
  void WarnOfUnknownNames();

  const Options options_;
  store::Store& store_;
  std::atomic<bool> cancelled_{false};
  const std::function<bool()> is_cancelled_;
  const SymbolLookup symbols_;  // finds nothing once cancelled
  DemangleCache names_;
  const Clock& clock_;
  std::vector<Metric> metrics_;
  CommittedSums::Types types_;
  FrameLabels::Wanted wanted_;
  std::vector<Feed> feeds_;
  MonotonicNs elect_at_;
  LogLimit failure_log_{30 * kNsPerSecond};
  bool has_warned_ = false;
  Counter &failures_, &expired_, &early_;
  Gauge& caught_up_;
};

}  // namespace tributary
