#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "base/arrival_wait.h"
#include "base/backoff.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "otlp/sender.h"
#include "profile/executable_id.h"
#include "reducer/export/export_counters.h"
#include "reducer/export/record_export.h"
#include "reducer/export/sample_feed.h"
#include "reducer/store/store.h"

namespace tributary {

// Does the work of an exporter, in passes over all shards. For each shard, a pass reads the new samples, holds them
// back while symbols and metadata may arrive, makes requests and sends them. It saves the end and the identity of each
// request before it sends the request, and the cursor after it. So if the process is killed, at most one request is
// sent again. The request that the next run sends has the same samples, numbers and ids, unless it cannot be the same.
// Then the next run sends what is left with new numbers: samples of it may have expired, metadata may have changed
// their order, or it may have become too large, because of names that arrived meanwhile or because the user chose
// another generation or encoding.
//
// Then the pass sends the new process events, losses and rollouts, if the receiver takes them. While these are held
// back, passes are more frequent, but send no samples before the interval is over.
//
// The store may remove samples before they are read, because they are too old or because the disk is full. A pass
// counts these samples. If the receiver takes no requests, a pass only looks for such samples.
//
// ExportLoop has no thread of its own and never sleeps: a PassThread calls it. An ExportLoop owns the sender. All other
// objects are borrowed and must outlive the ExportLoop.
class ExportLoop {
 public:
  // One scan reads at most about this many samples. The samples of a full scan are not held back, because more samples
  // wait behind them.
  static constexpr size_t kScanRowsMax = 200'000;
  // Before a stop, a request begins only if the receiver has this time to answer. If a request is interrupted, the next
  // run must send it again, although the receiver may have accepted it.
  static constexpr int64_t kAnswerNs = kNsPerSecond;
  static constexpr int64_t kRetryMinNs = kNsPerSecond / 2, kRetryMaxNs = 30 * kNsPerSecond;
  static constexpr int64_t kPollNs = kNsPerSecond;
  static constexpr int64_t kNamesWaitNs = 10 * kNsPerSecond;

  struct Options {
    std::string cursor_name;
    std::string metric_label;  // "otlp", "otlp_logs", "console", "file"
    std::string sender;        // of RequestIdentity
    otlp::ProfilesBuilder::Options builder;
    size_t scan_rows_max = kScanRowsMax;
    int64_t interval_ns = kPollNs;                 // between two passes, if there is no more to send
    const ResourceJoiner* joiner = nullptr;        // must outlive the loop; null: sends only the store's data
    int64_t metadata_wait_ns = 10 * kNsPerSecond;  // for metadata of a container
    int64_t send_timeout_ns = otlp::kSendTimeoutNs;
    int64_t lag_max_ns = 0;  // samples that wait longer after their commit, in this run, are skipped; 0: none are
    RecordSender* records = nullptr;       // a part of the sender; null: it can send only samples
    const RolloutLog* rollouts = nullptr;  // must outlive the loop; null: there are none
  };
  ExportLoop(Options options, store::Store& store, SymbolLookup symbols, std::unique_ptr<otlp::ProfilesSender> sender,
             const Clock& clock, Metrics& metrics);

  // Makes one pass over the shards. If a request fails and may be retried, the pass ends, and RunOnce does nothing
  // until the time of the retry. Returns the time until the next pass in ns: 0 if there are more samples to send.
  int64_t RunOnce();
  // Sends all committed samples and records. Does not wait for symbols and metadata. Starts at once, even if
  // RunOnce would still wait after a failure. Stops early shortly before `deadline`, after Cancel, or when a request
  // fails that may be retried. Returns false if unsent samples are left.
  bool Flush(MonotonicNs deadline);
  // From now on, RunOnce and Flush begin no request later than kAnswerNs before `deadline`. Any thread may call it.
  void EndBy(MonotonicNs deadline) { deadline_ns_ = deadline.value; }
  // Makes the RunOnce or Flush that is in progress return soon, and ends all sending. Any thread may call it.
  void Cancel() {
    cancelled_ = true;
    sender_->Cancel();
  }

 private:
  // kUnsaved: a position could not be saved, or a request in doubt could not be made. Then the pass ends. If other
  // shards went on, each could have a request that is sent again after a kill. Of several shards or kinds of records,
  // the last one in this order counts.
  enum class Progress { kIdle, kWaiting, kUnreadable, kMore, kUnsent, kUnsaved };

  size_t FirstFeed() const;
  Progress AdvanceFeeds();
  Progress AdvanceRecords(bool flush, bool only_interrupted = false);
  Progress AdvanceRecords(RecordExport& records, bool flush);
  Progress SendRecords(RecordExport& records, uint32_t shard, bool flush);
  Progress Advance(SampleFeed& feed, bool flush);
  Progress SendScan(SampleFeed& feed);
  int64_t WaitForRetry();
  bool LookAtWaiting();
  bool AwaitsNames(const SampleFeed& feed);
  bool AwaitsMetadata(const SampleFeed& feed, JoinedProcesses* joined);
  int64_t SendTimeout() const;
  bool Send(SampleFeed& feed, int64_t timeout_ns);
  void CountAnswer(const otlp::SendResult& result, uint64_t items_max, uint64_t refused, std::string_view noun);
  void Delay(const otlp::SendResult& failure);
  bool IsSaved(const absl::Status& saved);
  bool SaveAll();
  void AddFeeds();
  void LogFailure(std::string_view operation, const absl::Status& status);

  const Options options_;
  store::Store& store_;
  const SymbolLookup symbols_;
  const std::unique_ptr<otlp::ProfilesSender> sender_;
  const Clock& clock_;
  ArrivalWait<ExecutableId> names_{kNamesWaitNs};
  ArrivalWait<std::string> containers_;  // key: node, container and cgroup path
  std::mt19937_64 random_;
  Backoff backoff_ns_{{.min = kRetryMinNs, .max = kRetryMaxNs}};
  MonotonicNs not_before_{0};    // after a failure: no attempt before this time
  MonotonicNs next_samples_{0};  // while only records are waited for: no samples are read before this time
  MonotonicNs next_look_{0};     // with a limit of the lag: see LookAtWaiting
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
  LogLimit failure_log_{30 * kNsPerSecond};
  LogLimit rejection_log_{30 * kNsPerSecond};

  const ExportCounters counters_;
  SampleFeed::Shared samples_;
  std::vector<SampleFeed> feeds_;                       // index: shard
  std::vector<std::unique_ptr<RecordExport>> records_;  // one for each kind
};

}  // namespace tributary
