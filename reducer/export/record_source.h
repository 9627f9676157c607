#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "otlp/request_identity.h"
#include "reducer/export/record_sender.h"
#include "reducer/metadata/rollout_log.h"
#include "reducer/store/store.h"

namespace tributary {

// Some records of one kind, in the order of their commits.
class RecordBatch {
 public:
  virtual ~RecordBatch() = default;
  virtual size_t size() const = 0;
  virtual void Cut(size_t size) = 0;  // removes the records behind the first `size`
  // Returns a digest of what identifies the first `size` records.
  virtual uint64_t ContentOf(size_t size) const = 0;
  // Looks up facts that arrive after the records. Called before the first Send, until it succeeds. Returns the number
  // of records that are left without facts, because a limit was reached. DeadlineExceeded: it was cancelled.
  virtual absl::StatusOr<uint64_t> Complete() { return 0; }
  virtual RecordResult Send(const otlp::RequestIdentity& identity, int64_t timeout_ns) = 0;
};

// Reads records of one kind, and sends them.
class RecordSource {
 public:
  virtual ~RecordSource() = default;
  // The name of the positions is that of the exporter with this suffix.
  virtual std::string_view position_suffix() const = 0;
  virtual std::string_view noun() const = 0;  // for the log: "process events"
  // The records wait so long before they are sent, because facts about them arrive later.
  virtual int64_t hold_ns() const { return 0; }
  // Only the first shard has records, because they are not in the shards.
  virtual bool is_in_first_shard() const { return false; }
  // A position: `chunk` is the number behind which records are read. `samples` is only used for process events, as the
  // number of CountPassedEvents when records were last found to be missing.
  using Position = store::Cursor;
  struct Read {
    std::unique_ptr<RecordBatch> records;
    Position begin;        // `from`, with its present `samples`
    Position next;         // behind the records. Below `from` if the data were replaced: the scan has started over
    bool is_cut = false;   // more records follow, although there are fewer than `records_max`
    uint64_t expired = 0;  // records behind `from` that were removed since `from` was returned
    uint64_t damaged = 0;  // records before `next` that could not be read
  };
  // Reads about `records_max` of the shard's records behind the position `from`.
  virtual absl::StatusOr<Read> ReadBehind(uint32_t shard, const Position& from, size_t records_max) = 0;
  // Returns the number of records behind `*at` that were removed since `*at` was returned, and updates `*at`. For the
  // time in which nothing is read, because the receiver does not answer.
  virtual absl::StatusOr<uint64_t> FindExpired(uint32_t /*shard*/, Position* /*at*/) { return 0; }
};

// Which facts about a process are sent with its events, besides those in the events.
struct EventFacts {
  bool are_sent = false;  // the attributes that the process has reported about itself
  int64_t hold_ns = 0;    // events wait so long for these attributes, and for metadata
  std::function<bool()> is_cancelled = [] { return false; };  // ends the look-up of attributes
};

// `store` and `sender` must outlive the source.
std::unique_ptr<RecordSource> MakeEventSource(store::Store& store, RecordSender& sender, const EventFacts& facts);
std::unique_ptr<RecordSource> MakeLossSource(store::Store& store, RecordSender& sender);
// `rollouts` and `sender` must outlive the source.
std::unique_ptr<RecordSource> MakeRolloutSource(const RolloutLog& rollouts, RecordSender& sender);

}  // namespace tributary
