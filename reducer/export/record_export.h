#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "otlp/request_identity.h"
#include "reducer/export/export_counters.h"
#include "reducer/export/export_session.h"
#include "reducer/export/record_source.h"
#include "reducer/store/store.h"

namespace tributary {

// Sends the committed records of one kind (process events, losses or rollouts), in the order of their commits.
// ExportLoop calls it, on its thread. It has a position of its own for each shard: the exporter's name with the
// source's suffix. Like samples, each record is sent at least once, unless it expires before. A request that the last
// run began, and whose answer is not known, is sent again with the same records and numbers.
class RecordExport {
 public:
  // One batch has about this many records, and at most one stored chunk more. A sender may divide it into requests.
  static constexpr size_t kRecordsMax = 10'000;
  // If the store cannot be read for so long, records are sent without the facts that were to be looked up.
  static constexpr int64_t kLookUpNs = 30 * kNsPerSecond;

  // `sender` is that of RequestIdentity. All borrowed objects must outlive the RecordExport.
  RecordExport(const std::string& exporter, std::string sender, store::PositionStore& positions,
               std::unique_ptr<RecordSource> source, const RecordCounters& counters, const Clock& clock);

  enum class Progress {
    kIdle,        // all records that were committed when the step began are sent
    kMore,        // more records are left
    kWaiting,     // records are held back, because facts about them may still arrive
    kUnreadable,  // `status` is an error of the store
    kBlocked,     // the same, for a request in doubt: nothing else may be sent before it
    kUnsaved,     // `status` is an error of the store: it could not save the position
    kUnsent       // `result` is an error of the receiver that may be retried
  };
  struct Step {
    Progress progress = Progress::kIdle;
    bool sent_request = false;  // the receiver has accepted or refused a request
    uint64_t records = 0;       // of this request
    uint64_t refused = 0;       // records of this request that the receiver refused for good
    absl::Status status;
    RecordResult result;
  };
  // Loads the position in the shard, if it is not loaded yet.
  absl::Status Load(uint32_t shard);
  // Sends at most one batch of records of the shard. With `flush`, holds none back.
  Step Advance(uint32_t shard, int64_t timeout_ns, bool flush);
  // Saves the positions that could not be saved before.
  absl::Status SaveAll();
  // If a request of this run or the last one has no answer, returns its shard. Then the next request to the receiver
  // must be the same one, because the receiver may have got a part of it.
  std::optional<uint32_t> interrupted() const;
  std::string_view noun() const { return source_->noun(); }

 private:
  struct Feed {
    bool has_position = false;
    store::ExportPosition saved{.cursor = {.samples = std::nullopt}, .request = std::nullopt};
    RecordSource::Position begin, next;    // before and behind the records that were read last
    std::unique_ptr<RecordBatch> records;  // that are being sent; null: none
    otlp::RequestIdentity identity;        // of `records`
    bool in_doubt = false;                 // the receiver may have `records` already
    MonotonicNs read_at;
    bool is_complete = false;  // Complete was called
    bool is_cut = false;       // more records follow those that were read
    store::ExportSession session = NewExportSession();
    uint64_t next_number = 0;                  // of the next record in `session`
    std::optional<store::ExportRequest> last;  // the last run's request whose answer is not known
  };
  absl::Status Read(Feed& feed, uint32_t shard);
  void Identify(Feed& feed);
  void CountExpired(uint64_t records);
  bool IsHeld(const Feed& feed) const;
  absl::Status Complete(Feed& feed);
  Step Send(Feed& feed, uint32_t shard, int64_t timeout_ns);
  absl::Status SaveCursor(Feed& feed, uint32_t shard);
  absl::Status Save(Feed& feed, uint32_t shard, const store::ExportPosition& position);

  const std::unique_ptr<RecordSource> source_;
  const std::string position_name_;
  const std::string sender_;
  store::PositionStore& positions_;
  const RecordCounters counters_;
  const Clock& clock_;
  std::vector<Feed> feeds_;  // index: shard
  std::optional<uint32_t> interrupted_;
};

}  // namespace tributary
