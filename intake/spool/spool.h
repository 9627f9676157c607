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
#include "intake/spool/spool_storage.h"
#include "profile/batch.h"

namespace tributary::intake {

struct SpoolOptions {
  uint64_t bytes_max = 64u << 20;  // of all segments; the oldest unclaimed one is dropped when a new one would pass it
  uint64_t segment_bytes = 1u << 20;           // a segment is closed at this size,
  int64_t segment_age_ns = 60 * kNsPerSecond;  // or this age, and is then durable
};

// To whom a segment's batches belong once the first of them may have been sent: the session, and the sequence number of
// the first batch that is claimed. Whoever reads the segment after a crash must deliver them there and nowhere else, or
// samples could count twice.
struct SpoolClaim {
  std::string host;  // of the reducer
  uint16_t port = 0;
  std::array<uint8_t, 16> session_id{};
  uint64_t first_sequence = 0;
  Accounting base;  // the session's totals before that batch: what follows adds to them
  friend bool operator==(const SpoolClaim&, const SpoolClaim&) = default;
};

using SegmentId = uint64_t;  // above those of all segments there are, over restarts too

struct SpooledBatch {
  Batch batch;          // sequence 0; accounting: what the batch adds to the totals, not the totals
  SessionInfo session;  // of the process that wrote the segment
  SegmentId segment = 0;
  uint32_t index = 0;  // in the segment, from 0
  bool last_of_segment = false;
  // Made by an earlier process, or given to Append: the claim that covers this batch, with first_sequence and base
  // moved on to this batch.
  std::optional<SpoolClaim> claim;
  // Of a batch so claimed that cannot be read any more. It may have been sent, and stored, so that only whoever it was
  // claimed for can tell whether they are lost: `batch` has no samples and no dictionary, and tells these as
  // lost{spool_damaged} to a reducer that has not had its number.
  SampleCounts damaged_samples;
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
  // Samples, and what their batches would have added to the accounting, that will never be delivered: kSpoolOverflow,
  // kSpoolDamaged. Damaged batches that an earlier process claimed are not among them: Next returns those. Called by
  // Append, Next and Tick, never by Open; must not call the spool.
  // `earlier`: an earlier process wrote them.
  using Dropped =
      std::function<void(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier)>;

  // Finds what an earlier process left. FailedPrecondition: a newer release wrote it. Files that are not segments are
  // left alone. `storage`, `clock`, `metrics` outlive this.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(SpoolOptions options, SpoolStorage& storage,
                                                     const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                     Dropped dropped);
  ~Spool();  // closes the open segment

  // Behind all others. `batch.accounting` is what it adds to the totals. With a claim, it is the batch of exactly that
  // sequence, and goes to a segment of that session's. An error keeps nothing of the batch; the caller decides about
  // it: ResourceExhausted: the disk is full, or so is the spool and all of it is claimed or being read;
  // InvalidArgument: more than BatchEncoder::kSamplesPerBatchMax samples; else the disk's fault.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim = std::nullopt);

  // The oldest batch that Next has not returned yet, the open segment's included (it is closed then); claimed ones of
  // an earlier process first. nullopt: there is none. Damaged segments are dropped from the damage on, unless an
  // earlier process claimed that, and the next one is read.
  std::optional<SpooledBatch> Next();
  // Batch `index` of the segment and all behind it, before any of them is sent: durable when it returns OK; nothing of
  // it may be sent else. A later claim with a higher index (another session takes over what was not sent yet) leaves
  // the earlier one in force for the batches before it. NotFound: no such batch; ResourceExhausted: the segment has
  // room for about 30 claims, and has them.
  absl::Status Claim(SegmentId segment, uint32_t index, const SpoolClaim& claim);
  // All its batches were returned by Next and are durable at a reducer, or given up: the file goes.
  void Release(SegmentId segment);

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
