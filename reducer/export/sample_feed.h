#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/log.h"
#include "otlp/profiles_builder.h"
#include "otlp/request_identity.h"
#include "reducer/export/export_counters.h"
#include "reducer/export/export_session.h"
#include "reducer/export/request_maker.h"
#include "reducer/export/shard_scan.h"
#include "reducer/metadata/resource_joiner.h"
#include "reducer/store/store.h"

namespace tributary {

// The samples of one shard, in the order in which an exporter sends them: reads them, counts those that have expired,
// makes requests of them, gives the requests an identity, and saves the exporter's position in the shard. ExportLoop
// decides when a feed reads and when a request is sent. Used by one thread.
class SampleFeed {
 public:
  static constexpr int64_t kMarksMax = 64;  // the lag is measured in parts of its limit, this many

  // What the feeds of an exporter share. Must outlive them.
  struct Shared {
    std::string exporter;  // the name of its positions
    std::string sender;    // of RequestIdentity
    otlp::ProfilesBuilder::Options builder;
    size_t scan_rows_max = 0;  // one scan reads at most about this many samples
    const ResourceJoiner* joiner = nullptr;
    store::Store& store;
    SymbolLookup symbols;
    const Clock& clock;
    const ExportCounters& counters;
    int64_t lag_max_ns = 0;                                     // samples that wait longer are skipped; 0: none are
    std::function<bool()> is_cancelled = [] { return false; };  // no more samples need to be skipped
    LogLimit expired_log{30 * kNsPerSecond}, skipped_log{30 * kNsPerSecond};
  };
  // With this limit of the lag, ReadNext or FindExpired must be called at least this often.
  static int64_t LookEveryNs(int64_t lag_max_ns) { return std::max(lag_max_ns / kMarksMax, kNsPerSecond); }

  SampleFeed(uint32_t shard, Shared& shared) : shared_(shared), shard_(shard) {}

  // Loads the position, if it is not loaded yet.
  absl::Status Load();
  // Reads the next samples, unless there are none.
  absl::Status ReadNext();
  // Only counts the samples that have expired or wait too long.
  absl::Status FindExpired();
  // Returns the samples that were read and are not sent yet, or nullptr.
  const ShardScan* scan() const { return scan_.get(); }
  MonotonicNs held_since() const { return held_since_; }  // time of ReadNext
  // More samples wait behind the scan.
  bool is_full() const { return scan_->row_count() >= shared_.scan_rows_max || scan_->is_cut(); }
  void FinishScan();

  // Makes the first request of the scan possible. `joined`: as in RequestMaker.
  void StartRequests(JoinedProcesses joined);
  bool has_started() const { return maker_ != nullptr; }
  // Makes the next request and its identity. If the last run may have sent a request from the same position, the new
  // one has the same samples and the same identity. Returns false if no samples of the scan are left.
  bool MakeNext();
  bool has_request() const { return made_.request != nullptr; }
  RequestMaker::Made& request() { return made_; }
  const otlp::RequestIdentity& identity() const { return identity_; }  // of the request
  // The number of samples of the request that the receiver may have already.
  uint64_t samples_in_doubt() const { return samples_in_doubt_; }
  void SetInDoubt() { samples_in_doubt_ = made_.samples; }
  // The request needs no other attempt.
  void FinishRequest();

  // The last run has sent a request whose answer it did not know. It is not made again yet.
  bool has_last_request() const { return last_.has_value(); }

  // Saves the request before it is sent.
  absl::Status SaveRequest();
  // Saves the position of samples that were sent or have expired, if it is not saved yet.
  absl::Status SaveCursor();

 private:
  absl::Status Save(const store::ExportPosition& position);
  void CountExpired(const store::CommittedScan& scan);
  void NoteNewest(int64_t newest);
  absl::Status SkipLagging(store::StoreReader& reader);
  uint64_t SamplesOfLastRun() const;
  void StartAt(const store::Cursor& begin);

  // The newest chunk of the shard at a time.
  struct Mark {
    MonotonicNs at;
    int64_t newest = 0;
  };

  Shared& shared_;
  uint32_t shard_ = 0;
  std::deque<Mark> marks_;  // oldest first; with a limit of the lag
  bool has_position_ = false;
  // The exporter is new, and has seen no sample of the shard. Samples that expired before do not count.
  bool is_new_ = false;
  store::Cursor read_to_;                       // all samples before it were read, or counted as expired
  std::optional<store::ExportPosition> saved_;  // unset: the store has no position
  // The shard's file was replaced by an older copy. The exporter has seen the chunks up to this one, so they do not
  // count if they have expired.
  int64_t seen_to_ = 0;
  MonotonicNs held_since_;
  std::unique_ptr<ShardScan> scan_;  // the samples that are being sent
  std::unique_ptr<RequestMaker> maker_;
  RequestMaker::Made made_;         // the request that is being sent
  otlp::RequestIdentity identity_;  // of `made_`
  uint64_t samples_in_doubt_ = 0;
  store::ExportSession session_ = NewExportSession();
  uint64_t next_number_ = 0;                  // of the next sample in `session_`
  std::optional<store::ExportRequest> last_;  // the last run's request whose answer is not known; not made yet
  std::optional<store::Cursor> doubt_to_;     // the receiver may have samples before it from the last run
  // Of samples that were sent or have expired, or of a new start: must be saved before the next request of any shard.
  std::optional<store::Cursor> unsaved_;
};

}  // namespace tributary
