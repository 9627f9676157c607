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
  uint64_t bytes_max = 64u << 20;              // limit of all segments; above it, the oldest unclaimed ones are dropped
  uint64_t segment_bytes = 1u << 20;           // a segment is closed and synced to the disk at this size
  int64_t segment_age_ns = 60 * kNsPerSecond;  // or at this age
};

// A claim reserves batches of a segment for one session with one reducer. It contains the sequence number of the first
// of these batches in the session; the next batches have the next numbers. The claim is on disk before the first of
// these batches is sent. After a crash, the batches must be sent only in this session and with these sequence numbers.
// Otherwise samples could count twice.
struct SpoolClaim {
  std::string host;  // host and port of the reducer
  uint16_t port = 0;
  std::array<uint8_t, 16> session_id{};
  uint64_t first_sequence = 0;
  Accounting base;  // the session's totals before the first claimed batch
  friend bool operator==(const SpoolClaim&, const SpoolClaim&) = default;
};

using SegmentId = uint64_t;  // a new id is larger than the ids of all existing segments, even after a restart

struct SpooledBatch {
  Batch batch;          // sequence 0; accounting: the amount that the batch adds to the session's totals
  SessionInfo session;  // of the process that wrote the segment
  SegmentId segment = 0;
  uint32_t index = 0;  // in the segment, from 0
  bool last_of_segment = false;
  // The claim that covers this batch, if an earlier process made the claim, or if it was passed to Append. Here,
  // first_sequence and base are for this batch.
  std::optional<SpoolClaim> claim;
  // Not empty if this is a claimed batch that cannot be read any more: the samples that it had. The batch may have been
  // sent and stored, so only the reducer of the claim knows whether these samples are lost. `batch` then has no samples
  // and no dictionary, and its accounting counts these samples as lost (spool_damaged). The caller must send `batch`
  // only if the reducer has not stored this sequence number yet.
  SampleCounts damaged_samples;
};

// Stores batches on disk, in order, in files that are called segments (docs/spool.md). A segment does not depend on
// other segments: it has its own dictionary, with only the definitions that its samples and process events use.
// Checksums cover all of its content. If the last batch of a segment is incomplete, it is cut off, and its samples
// count as lost. Batches after a damaged byte are not used. A segment is written once and read once. It is removed when
// each of its batches is durable at a reducer or was given up, or to free space when the spool is full.
//
// If Append returned OK, its batch survives kill -9 at any instruction. Closed segments and claims survive power loss.
// Use the spool only on the loop's thread. Claim and Release wait for the disk. Append, Next and Tick wait only if they
// read, close or remove a segment.
class Spool {
 public:
  // Called for samples that will never be delivered (kSpoolOverflow, kSpoolDamaged). `accounting`: the amounts that the
  // batches of these samples would have added to the totals. `earlier`: an earlier process wrote the samples. Not
  // called for damaged batches that an earlier process claimed, because Next returns these batches. Append, Next and
  // Tick call it, and Open does not. The function must not call the spool.
  using Dropped =
      std::function<void(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier)>;

  // Finds the segments of an earlier process. FailedPrecondition if a newer release wrote them. Ignores files that are
  // not segments. `storage`, `clock`, `metrics` must outlive this object.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(SpoolOptions options, SpoolStorage& storage,
                                                     const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                     Dropped dropped);
  ~Spool();  // closes the open segment

  // Appends `batch` after all other batches. `batch.accounting` must be the amount that the batch adds to the totals.
  // If `claim` is given, the batch was sent with the claim's sequence number, and is written to a segment with claims
  // of the same session. After an error, nothing of the batch is in the spool. ResourceExhausted: the disk is full, or
  // the spool is full and all its segments are claimed or being read. InvalidArgument: the batch is too
  // large (BatchEncoder::Fits). Any other error comes from the disk.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim = std::nullopt);

  // Returns the oldest batch that Next has not returned yet, or nullopt if there is none. Batches that an earlier
  // process claimed come first. If the batch is in the segment that is being written, the segment is closed. If the
  // rest of a segment is damaged, Next drops the batches of this rest and continues with the next segment. If an
  // earlier process claimed the damaged batches, Next returns each of them with damaged_samples instead.
  std::optional<SpooledBatch> Next();
  // Claims batch `index` of the segment and all batches after it. The caller must call it before it sends any of these
  // batches. If Claim returns OK, the claim is on disk. After an error, none of these batches may be sent. If another
  // session takes over the unsent batches, it makes a claim with a higher index. The earlier claim then stays valid for
  // the batches before that index. NotFound: there is no such batch. ResourceExhausted: the segment already has its
  // maximum of about 30 claims.
  absl::Status Claim(SegmentId segment, uint32_t index, const SpoolClaim& claim);
  // Removes the segment's file. Call it when Next has returned all batches of the segment, and each of them is durable
  // at a reducer or was given up.
  void Release(SegmentId segment);

  void Tick();  // call it at least once a second: closes the open segment at segment_age_ns

  bool empty() const;        // true if Next would return nullopt
  uint64_t samples() const;  // in all segments, returned by Next or not
  uint64_t bytes() const;
  uint64_t bytes_max() const;
  size_t segments() const;

 private:
  struct Impl;
  explicit Spool(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary::intake
