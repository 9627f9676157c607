#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "intake/spool_storage.h"
#include "profile/batch.h"

namespace tributary::intake {

struct SpoolOptions {
  uint64_t bytes_max = 64u << 20;  // of all segments; the oldest unclaimed one is dropped when a new one would pass it
  uint64_t segment_bytes = 1u << 20;           // a segment is closed at this size,
  int64_t segment_age_ns = 60 * kNsPerSecond;  // or this age, and is then durable
};

// To whom a segment's batches belong once the first of them may have been sent: session and the sequence number of its
// first batch. Whoever reads the segment after a crash must deliver it there and nowhere else, or samples could count
// twice.
struct SpoolClaim {
  std::string host;  // of the reducer
  uint16_t port = 0;
  std::array<uint8_t, 16> session_id{};
  uint64_t first_sequence = 0;
  friend bool operator==(const SpoolClaim&, const SpoolClaim&) = default;
};

using SegmentId = uint64_t;  // goes up from segment to segment, over restarts too

struct SpooledBatch {
  Batch batch;          // sequence 0; accounting: what the batch adds to the totals, not the totals
  SessionInfo session;  // of the process that wrote the segment
  SegmentId segment = 0;
  bool last_of_segment = false;
  std::optional<SpoolClaim> claim;  // made by an earlier process, or by this one before it asked for this batch
};

// Batches that memory has no room for, on disk, oldest first (docs/spool.md). A segment stands for itself: it begins
// with its own dictionary, holds only what its samples use, and everything in it is checksummed, so that a torn tail is
// cut off and counted, and nothing behind a damaged byte is believed. Written once, read once, removed when all of it
// is durable at a reducer.
//
// What it survives: kill -9 at any instruction, of all that Append returned OK for; power loss, of closed segments and
// claims. On the loop's thread: Append writes without waiting for the disk; closing a segment and a claim wait for it.
class Spool {
 public:
  // Samples, and what their batches would have added to the accounting, that will never be delivered.
  using Dropped = std::function<void(LossReason reason, uint64_t samples, const Accounting& accounting)>;

  // Finds what an earlier process left. Files that are not segments are left alone. `storage`, `clock`, `metrics`
  // outlive this.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(SpoolOptions options, SpoolStorage& storage,
                                                     const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                     Dropped dropped);
  ~Spool();  // closes the open segment

  // Behind all others. `batch.accounting` is what it adds to the totals. With a claim, it is the batch of exactly that
  // sequence, and goes to a segment of that session's. An error (disk full: ResourceExhausted) keeps nothing of the
  // batch; the caller decides about it.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim = std::nullopt);

  // The oldest batch that Next has not returned yet, the open segment's included (it is closed then); claimed ones of
  // an earlier process first. nullopt: there is none. Damaged segments are dropped, and the next one is read.
  std::optional<SpooledBatch> Next();
  // Before the first batch of a segment is sent: durable when it returns OK; nothing of the segment may be sent else.
  absl::Status Claim(SegmentId segment, const SpoolClaim& claim);
  // All its batches are durable at the reducer, or given up: the file goes.
  void Release(SegmentId segment);
  // Batches that Next has returned, and those behind them in their segments, are returned again: they were not sent.
  void Rewind(SegmentId segment);

  void Tick();  // every second or so: closes a segment by age

  bool empty() const;        // Next would return nothing
  uint64_t samples() const;  // in all segments, sent or not
  uint64_t bytes() const;
  size_t segments() const;

 private:
  struct Impl;
  explicit Spool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
