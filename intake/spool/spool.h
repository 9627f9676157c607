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
  uint64_t bytes_max = 64u << 20;  // of all segments; above it, the oldest unclaimed segment is dropped for a new one
  uint64_t segment_bytes = 1u << 20;           // a segment is closed at this size
  int64_t segment_age_ns = 60 * kNsPerSecond;  // or at this age, and is then durable
};

// States where a segment's batches go once the first of them may have been sent: the session, and the sequence number
// of the first claimed batch. After a crash, a reader of the segment must deliver the batches to this destination and
// nowhere else. Otherwise samples could count twice.
struct SpoolClaim {
  std::string host;  // of the reducer
  uint16_t port = 0;
  std::array<uint8_t, 16> session_id{};
  uint64_t first_sequence = 0;
  Accounting base;  // the session's totals before the first claimed batch
  friend bool operator==(const SpoolClaim&, const SpoolClaim&) = default;
};

using SegmentId = uint64_t;  // a new id is larger than those of all existing segments, even after a restart

struct SpooledBatch {
  Batch batch;          // sequence 0; accounting: the amount that the batch adds to the totals, not the totals
  SessionInfo session;  // of the process that wrote the segment
  SegmentId segment = 0;
  uint32_t index = 0;  // in the segment, from 0
  bool last_of_segment = false;
  // The claim that covers this batch: an earlier process made it, or it was given to Append. first_sequence and base
  // are those of this batch.
  std::optional<SpoolClaim> claim;
  // The samples of a claimed batch that cannot be read any more. They may have been sent and stored, so only the
  // reducer of the claim knows whether they are lost. `batch` has no samples and no dictionary. If the
  // reducer has not stored the batch's sequence number, it counts these samples as lost{spool_damaged}.
  SampleCounts damaged_samples;
};

// Stores batches on disk that do not fit into memory, in order (docs/spool.md). A segment does not depend on other
// segments. It begins with its own dictionary, holds only the definitions that its samples use, and all of its content
// is checksummed. So a torn tail is cut off and counted, and nothing after a damaged byte is trusted. A segment is
// written once, read once, and removed when all of it is durable at a reducer.
//
// Every batch for which Append returned OK survives kill -9 at any instruction. Closed segments and claims survive
// power loss. On the loop's thread: Append writes without waiting for the disk; closing a segment and a claim wait for
// it.
class Spool {
 public:
  // Called for samples that will never be delivered (kSpoolOverflow, kSpoolDamaged), with the amounts that their
  // batches would have added to the accounting. Not called for damaged batches that an earlier process claimed: Next
  // returns those batches. Append, Next and Tick call it, Open does not. It must not call the spool. `earlier`: an
  // earlier process wrote the samples.
  using Dropped =
      std::function<void(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool earlier)>;

  // Finds the segments of an earlier process. FailedPrecondition if a newer release wrote them. Does not touch files
  // that are not segments. `storage`, `clock`, `metrics` must outlive this object.
  static absl::StatusOr<std::unique_ptr<Spool>> Open(SpoolOptions options, SpoolStorage& storage,
                                                     const SessionInfo& session, const Clock& clock, Metrics& metrics,
                                                     Dropped dropped);
  ~Spool();  // closes the open segment

  // Appends `batch` after all others. `batch.accounting` must be the amount that the batch adds to the totals. With a
  // claim, the batch has exactly the claim's sequence number, and goes to a segment of the claim's session. After an
  // error the spool keeps nothing of the batch, and the caller decides about it. ResourceExhausted: the disk is full,
  // or the spool is full and all of it is claimed or being read. InvalidArgument: more than
  // BatchEncoder::kSamplesPerBatchMax samples. Any other error comes from the disk.
  absl::Status Append(const Batch& batch, const std::optional<SpoolClaim>& claim = std::nullopt);

  // Returns the oldest batch that Next has not returned yet; claimed batches of an earlier process come first. If it is
  // in the open segment, that segment is closed. Returns nullopt if there is no batch left. The damaged part of a
  // segment is dropped, unless an earlier process claimed it, and the next segment is read.
  std::optional<SpooledBatch> Next();
  // Claims batch `index` of the segment and all batches after it. The caller must call it before any of them is sent.
  // The claim is durable when Claim returns OK. After an error, none of these batches may be sent. A later claim with a
  // higher index (another session takes over the batches that were not sent yet) leaves the earlier claim in force for
  // the batches before it. NotFound: no such batch. ResourceExhausted: the segment already has its maximum of about 30
  // claims.
  absl::Status Claim(SegmentId segment, uint32_t index, const SpoolClaim& claim);
  // Removes the segment's file. Call it when Next has returned all batches of the segment, and each is durable at a
  // reducer or given up.
  void Release(SegmentId segment);

  void Tick();  // call it about every second: closes a segment by age

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
