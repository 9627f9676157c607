#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
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
// 60 s (SyncIfDue), and at a stop, so older ones survive power loss. If a slow disk does not sync them within kSyncNs,
// the rest is synced later, or after a stop by the kernel. If the spool is full, the oldest requests are lost. Used by
// one thread at a time.
class RequestSpool {
 public:
  static constexpr uint64_t kBlockBytes = 4096;  // a file takes whole blocks
  static constexpr uint64_t kUnsyncedBytesMax = 1u << 20;
  static constexpr int64_t kUnsyncedNs = 60 * kNsPerSecond;
  static constexpr int64_t kSyncNs = kNsPerSecond;  // a call syncs files for so long, plus the last sync
  static constexpr int64_t kSlowSyncNs = kSyncNs / 10;
  static constexpr int64_t kUnreadableNs = 5 * kNsPerMinute;
  static constexpr int64_t kUnreadRetryNs = 5 * kNsPerSecond;
  static constexpr size_t kRequestsMax = 1u << 15;  // each takes about 200 bytes of memory
  static constexpr size_t kUnremovedMax = 1024;     // files that could not be removed; then Append fails

  using Session = std::array<uint8_t, 16>;

  // Finds the requests of earlier collectors. Reads only their headers: ReadFront finds other damage. Drops the oldest
  // requests if there are more than `requests_max`. A file that cannot be read now stays: its bytes count, and its
  // samples do not. Tick tries again to read it, for kUnreadableNs. After that, it stays for the next start.
  // FailedPrecondition if a newer release wrote one of the files. Ignores other files. `clock` and `metrics` must
  // outlive this object.
  static absl::StatusOr<std::unique_ptr<RequestSpool>> Open(uint64_t bytes_max,
                                                            std::unique_ptr<intake::SpoolStorage> storage,
                                                            const Clock& clock, Metrics& metrics,
                                                            size_t requests_max = kRequestsMax);

  // Removes the files that could not be removed before, and syncs files: each for kSyncNs, plus the last operation.
  ~RequestSpool();

  // Tries again to read the files that Open could not read: until `end`, but at least one of them. A file of a newer
  // release stays, and is not tried again.
  void RetryUnread(MonotonicNs end = MonotonicNs{INT64_MAX});
  // The caller has counted all samples and events of these sessions as lost, except for those that FoundOf returned. So
  // a file of them that can be read only later is removed. It is not sent, and not counted again.
  void SetLost(std::span<const Session> sessions);

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
  // large for this spool, and counts as lost. Other errors, for example a full disk: it may be appended later. Call
  // SyncIfDue afterwards, unless a slow disk must not delay the caller.
  absl::Status Append(const DirectRequest& request);

  // Requests that were lost. The call clears the list.
  struct Dropped {
    LossReason reason{};  // that of DropFront, or spool_overflow or spool_damaged; in_doubt: the receiver may have it
    SampleCounts counts;
    bool earlier = false;
    bool is_overflow = false;  // also if `reason` is in_doubt
  };
  std::vector<Dropped> TakeDropped() { return std::exchange(dropped_, {}); }

  // Syncs files if those that are not synced have 1 MiB, or are 60 s old.
  void SyncIfDue();
  // Call it at least every few seconds: syncs files, removes files that could not be removed before, and reads files
  // that could not be read before.
  void Tick();

  bool empty() const { return entries_.empty(); }
  uint64_t bytes() const { return bytes_; }
  const SampleCounts& own() const { return own_; }                // in requests of this collector
  const SampleCounts& earlier() const { return earlier_; }        // in requests of earlier collectors
  const SampleCounts& found_lost() const { return found_lost_; }  // that Open, RetryUnread and Tick dropped
  // Returns the samples and events that they found, also in damaged files, of this session and of its events.
  SampleCounts FoundOf(Session session) const;

 private:
  struct Entry {
    RequestId id = 0;
    uint64_t bytes = 0;
    SampleCounts counts;
    bool in_doubt = false;
    bool earlier = false;
  };
  struct File {
    RequestId id = 0;
    uint64_t bytes = 0;
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
  size_t RemoveUnremoved();
  void RetryUnreadIfDue();
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
  std::vector<RequestId> unremoved_;
  std::vector<File> unsynced_;
  uint64_t unsynced_bytes_ = 0;
  MonotonicNs unsynced_since_;
  std::vector<File> unread_;  // that may be readable later
  MonotonicNs opened_, unread_tried_;
  absl::flat_hash_set<Session> lost_;  // SetLost
  absl::flat_hash_map<Session, SampleCounts> found_;
  LogLimit log_limit_{kNsPerMinute}, damage_log_{kNsPerMinute};
};

// Process events have numbers, and so a session, of their own.
inline std::array<uint8_t, 16> EventSession(std::array<uint8_t, 16> session) {
  session.back() ^= 1;
  return session;
}

}  // namespace tributary
