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
#include "otlp/request_identity.h"
#include "otlp/sender.h"
#include "profile/executable_id.h"
#include "reducer/export/event_export.h"
#include "reducer/export/export_counters.h"
#include "reducer/export/export_session.h"
#include "reducer/export/shard_scan.h"
#include "reducer/store/store.h"

namespace tributary {

// Does the work of an exporter, in passes over all shards. For each shard, a pass reads the new samples, holds them
// back while symbols and metadata may arrive, makes requests and sends them. It saves the end and the identity of each
// request before it sends the request, and the cursor after it. So if the process is killed, at most one request is
// sent again. The request that the next run sends has the same samples, numbers and ids. Only if samples of it have
// expired meanwhile, or if it became too large because of names that arrived meanwhile, the next run sends what is left
// with new numbers. Then the pass sends the new process events, if the receiver takes them.
//
// The store may remove samples before they are read, because they are too old or because the disk is full. A pass
// counts these samples. If the receiver takes no requests, a pass only looks for such samples.
//
// ExportLoop has no thread of its own and never sleeps: ExportThread calls it. An ExportLoop owns the sender. All other
// objects are borrowed and must outlive the ExportLoop.
class ExportLoop {
 public:
  // One scan reads at most about this many samples. The samples of a full scan are not held back, because more samples
  // wait behind them.
  static constexpr size_t kScanRowsMax = 100'000;
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
    EventSender* events = nullptr;  // a part of the sender; null: it cannot send process events
  };
  ExportLoop(Options options, store::Store& store, SymbolLookup symbols, std::unique_ptr<otlp::ProfilesSender> sender,
             const Clock& clock, Metrics& metrics);

  // Makes one pass over the shards. If a request fails and may be retried, the pass ends, and RunOnce does nothing
  // until the time of the retry. Returns the time until the next pass in ns: 0 if there are more samples to send.
  int64_t RunOnce();
  // Sends all committed samples and process events. Does not wait for symbols and metadata. Starts at once, even if
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
  struct Feed {
    uint32_t shard = 0;
    bool has_position = false;
    // The exporter is new, and has seen no sample of the shard. Samples that expired before do not count.
    bool is_new = false;
    store::Cursor read_to;                       // all samples before it were read, or counted as expired
    std::optional<store::ExportPosition> saved;  // unset: the store has no position
    // The shard's file was replaced by an older copy. The exporter has seen the chunks up to this one, so they do not
    // count if they have expired.
    int64_t seen_to = 0;
    MonotonicNs held_since;
    std::unique_ptr<ShardScan> scan;  // the samples that are being sent
    std::unique_ptr<RequestMaker> maker;
    RequestMaker::Made made;         // the request that is being sent
    otlp::RequestIdentity identity;  // of `made`
    uint64_t content = 0;            // otlp::ContentOf(*made.request)
    bool in_doubt = false;           // the receiver may have `made` already
    store::ExportSession session = NewExportSession();
    uint64_t next_number = 0;                  // of the next sample in `session`
    std::optional<store::ExportRequest> last;  // the last run's request whose answer is not known; not made yet
    std::optional<store::Cursor> doubt_to;     // the receiver may have samples before it from the last run
    // Of samples that were sent or have expired, or of a new start: must be saved before the next request of any shard.
    std::optional<store::Cursor> unsaved;
  };
  // kUnsaved: a position could not be saved. Then the pass ends. If other shards went on, each could have a request
  // that is sent again after a kill.
  enum class Progress { kIdle, kWaiting, kMore, kUnreadable, kUnsent, kUnsaved };

  size_t FirstFeed() const;
  Progress AdvanceEvents(bool flush);
  Progress Advance(Feed& feed, bool flush);
  Progress SendScan(Feed& feed);
  absl::Status LoadPosition(Feed& feed);
  void MakeNext(Feed& feed);
  bool SaveRequest(Feed& feed);
  bool Save(Feed& feed, const store::ExportPosition& position);
  absl::Status ReadNext(Feed& feed);
  int64_t WaitForRetry();
  absl::Status FindExpired(Feed& feed);
  void CountExpired(Feed& feed, const store::CommittedScan& scan);
  void StartAt(Feed& feed, const store::Cursor& begin);
  bool AwaitsNames(const Feed& feed);
  bool AwaitsMetadata(const Feed& feed);
  int64_t SendTimeout() const;
  bool Send(Feed& feed, int64_t timeout_ns);
  void CountAnswer(const otlp::SendResult& result, uint64_t items_max, uint64_t refused, std::string_view noun);
  void Delay(const otlp::SendResult& failure);
  bool SaveCursor(Feed& feed);
  bool SaveAll();
  void AddFeeds();
  void LogFailure(std::string_view operation, const absl::Status& status);

  const Options options_;
  store::Store& store_;
  const SymbolLookup symbols_;
  const std::unique_ptr<otlp::ProfilesSender> sender_;
  const Clock& clock_;
  std::vector<Feed> feeds_;
  std::optional<EventExport> events_;
  ArrivalWait<ExecutableId> names_{kNamesWaitNs};
  ArrivalWait<std::string> containers_;  // key: node, container and cgroup path
  std::mt19937_64 random_;
  Backoff backoff_ns_{{.min = kRetryMinNs, .max = kRetryMaxNs}};
  MonotonicNs not_before_{0};  // after a failure: no attempt before this time
  std::atomic<bool> cancelled_{false};
  std::atomic<int64_t> deadline_ns_{INT64_MAX};
  LogLimit failure_log_{30 * kNsPerSecond};
  LogLimit rejection_log_{30 * kNsPerSecond};
  LogLimit expired_log_{30 * kNsPerSecond};

  const ExportCounters counters_;
};

}  // namespace tributary
