#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "intake/spool/spool_metrics.h"
#include "intake/spool/spool_storage.h"
#include "kernel-collector/direct/request_file.h"
#include "profile/accounting.h"

namespace tributary {

// Stores requests on disk, in order, in a file for each request. It uses the directory of the spool for reducers
// (intake/spool/), its operations on files and its metrics, but other files: a reducer gets batches without names,
// which are cheaper to keep. A request has its names and its identity, so it can be sent again after a kill without the
// data that the killed collector had in memory.
//
// If Append returned OK, its request survives kill -9 at any instruction. Files are synced to the disk after 1 MiB or
// 60 s, and at a stop, so older ones survive power loss. On a disk that is so slow that a sync takes longer than
// kSyncNs, the rest is synced later, or after a stop by the kernel. If the spool is full, the oldest requests are lost.
// Used by one thread at a time.
class RequestSpool {
 public:
  static constexpr uint64_t kBlockBytes = 4096;  // a file takes whole blocks
  static constexpr uint64_t kUnsyncedBytesMax = 1u << 20;
  static constexpr int64_t kUnsyncedNs = 60 * kNsPerSecond;
  static constexpr int64_t kSyncNs = kNsPerSecond;  // a call syncs files for so long, and a stop twice
  static constexpr int64_t kUnreadableNs = 5 * kNsPerMinute;
  static constexpr size_t kRequestsMax = 1u << 15;  // each takes about 200 bytes of memory
  static constexpr size_t kUnremovedMax = 1024;     // files that could not be removed; then Append fails

  // Finds the requests of earlier collectors. Reads only their headers: ReadFront finds other damage. Drops the oldest
  // requests if there are more than `requests_max`. A file that cannot be read now stays: its bytes count, and its
  // samples do not (RetryUnread). FailedPrecondition if a newer release wrote one of the files. Ignores other files.
  // `clock` and `metrics` must outlive this object.
  static absl::StatusOr<std::unique_ptr<RequestSpool>> Open(uint64_t bytes_max,
                                                            std::unique_ptr<intake::SpoolStorage> storage,
                                                            const Clock& clock, Metrics& metrics,
                                                            size_t requests_max = kRequestsMax);

  ~RequestSpool();  // syncs files, and removes those that could not be removed before; for 2 * kSyncNs at most

  // Tries once more to read the files that Open could not read. Call it before the first ReadFront. `give_up`: those
  // that still cannot be read are removed, because the caller is about to count their samples as lost. Without it, they
  // stay for the next start.
  void RetryUnread(bool give_up);

  struct Front {
    DirectRequest request;
    bool earlier = false;  // an earlier collector wrote it
  };
  // Returns the oldest request. Drops requests that are damaged, and a request that could not be read for
  // kUnreadableNs. NotFound: the spool is empty. Another error: the oldest request cannot be read now, for example
  // because there are too many open files. It stays: call ReadFront again later.
  absl::StatusOr<Front> ReadFront();
  // Saves whether the receiver may have accepted the oldest request. Call it before and after each attempt to send it.
  // An error is counted.
  void MarkFront(bool in_doubt);
  // Removes the oldest request: the receiver accepted or refused it.
  void PopFront();
  // Removes the oldest request, and counts it as lost.
  void DropFront(LossReason reason);

  // Appends a request after all others. After an error the request is not in the spool. OutOfRange: the request is too
  // large for this spool, and counts as lost. Other errors, for example a full disk: it may be appended later.
  absl::Status Append(const DirectRequest& request);

  // Requests that were lost. The call clears the list.
  struct Dropped {
    LossReason reason{};  // that of DropFront, or spool_overflow or spool_damaged; in_doubt: the receiver may have it
    SampleCounts counts;
    bool earlier = false;
    bool is_overflow = false;  // also if `reason` is in_doubt
  };
  std::vector<Dropped> TakeDropped() { return std::exchange(dropped_, {}); }

  // Call it at least every few seconds: syncs files, and removes files that could not be removed before.
  void Tick();

  bool empty() const { return entries_.empty(); }
  uint64_t bytes() const { return bytes_; }
  const SampleCounts& own() const { return own_; }                // in requests of this collector
  const SampleCounts& earlier() const { return earlier_; }        // in requests of earlier collectors
  const SampleCounts& found_lost() const { return found_lost_; }  // that Open and RetryUnread dropped
  // Returns the samples and events that they found, also in damaged files, of this session and of its events.
  SampleCounts FoundOf(std::array<uint8_t, 16> session) const;

 private:
  struct Entry {
    RequestId id = 0;
    uint64_t bytes = 0;
    SampleCounts counts;
    bool in_doubt = false;
    bool earlier = false;
  };

  RequestSpool(uint64_t bytes_max, size_t requests_max, std::unique_ptr<intake::SpoolStorage> storage,
               const Clock& clock, Metrics& metrics)
      : bytes_max_(bytes_max),
        requests_max_(requests_max),
        storage_(std::move(storage)),
        clock_(clock),
        metrics_(metrics) {}
  absl::Status Load();
  absl::Status LoadRequest(RequestId id);
  void Add(Entry entry);
  void Lose(LossReason reason, const Entry& entry);
  void MakeRoom(uint64_t bytes);
  void SyncFiles();
  void RemoveUnremoved();
  void RemoveFile(RequestId id);
  void Damaged(RequestId id, const absl::Status& why);
  void Failed(intake::SpoolOperation operation, const absl::Status& status);
  void ShowSizes();

  const uint64_t bytes_max_;
  const size_t requests_max_;
  const std::unique_ptr<intake::SpoolStorage> storage_;
  const Clock& clock_;
  intake::SpoolMetrics metrics_;
  otlp::GzipCompressor gzip_;
  std::deque<Entry> entries_;  // the oldest first
  uint64_t bytes_ = 0;
  SampleCounts own_, earlier_, found_lost_;
  RequestId next_id_ = 1;
  std::vector<Dropped> dropped_;
  std::optional<MonotonicNs> unreadable_since_;  // of the oldest request: its reads fail
  std::vector<RequestId> unsynced_, unremoved_;
  std::vector<std::pair<RequestId, uint64_t>> unread_;  // files that could not be read, and their bytes
  uint64_t unsynced_bytes_ = 0;
  MonotonicNs unsynced_since_;
  absl::flat_hash_map<std::array<uint8_t, 16>, SampleCounts> found_;  // by session
  LogLimit log_limit_{kNsPerMinute}, damage_log_{kNsPerMinute};
};

// Process events have numbers, and so a session, of their own.
inline std::array<uint8_t, 16> EventSession(std::array<uint8_t, 16> session) {
  session.back() ^= 1;
  return session;
}

}  // namespace tributary
