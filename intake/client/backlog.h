#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "base/log.h"
#include "intake/client/send_window.h"
#include "intake/spool/spool.h"
#include "profile/batch.h"

namespace tributary::intake {

// Stores the batches that were not sent in any session yet, oldest first: batches in the spool, then batches in memory.
// Also stores the losses that no batch has reported yet. The batches have no sequence number yet. The accounting of
// each batch is the amount that the batch adds to the totals of its session. Use it only on the loop's thread.
class Backlog {
 public:
  // Called for each loss, so that the caller can add it to the process's totals and log it. A later batch reports the
  // loss to a reducer.
  using Lost = std::function<void(LossReason, const SampleCounts&)>;

  // `spool` may be null. Before the first call of Next, the caller must read from the spool all batches that an earlier
  // process claimed (SpoolClaim). `own`: the session id that this process writes into the headers of the spool's files.
  Backlog(size_t memory_bytes_max, Spool* spool, std::array<uint8_t, 16> own, const Clock& clock, Lost lost);

  void Add(Batch batch);
  // Adds a loss to report. `with`: the losses and idle ticks that the lost batches would have reported. `foreign`: true
  // if an earlier process captured the samples.
  void AddLoss(LossReason reason, const SampleCounts& samples, const Accounting& with, bool foreign = false);
  // Call it for batches that were sent, but never acknowledged. Their samples count as lost (in_doubt). The losses that
  // these batches reported become in_doubt, too: the reducer may have counted them already, and then the sums of their
  // original reasons would be wrong.
  void AddDoubt(const SampleCounts& samples, const Accounting& with, bool foreign);
  enum class Reason {
    kLimit,  // memory may be over its limit
    kAway,   // no reducer takes batches
    kStop,   // the process ends
  };
  // Moves the oldest batches to the spool until the memory is within its limit. For kAway and kStop, moves all batches
  // to the spool. If the spool accepts no batch, batches stay in memory up to the limit, and the oldest batches above
  // the limit are lost. For kStop, all batches that the spool does not accept are lost. Without a spool, Spill drops
  // only the batches above the limit.
  void Spill(Reason reason);

  // Returns the batch that Next would return, or nullptr. The pointer is valid until another method is called.
  const Batch* Oldest();
  // Returns true if the memory or the spool has so little space left that batches will soon be lost.
  bool nearly_full() const;
  // Removes and returns the oldest batch. `as`: the session, sequence number and totals with which the caller will send
  // it. If the batch comes from the spool, it is first claimed for `as` on disk. The caller must set `pending`.
  std::optional<Outgoing> Next(const SpoolClaim& as);
  // Returns and clears the losses that were not reported yet. The caller must report them.
  Accounting TakeLosses() { return std::exchange(unreported_, {}); }
  // Call it once for each batch of `segment` that is durable or was given up.
  void Settled(SegmentId segment);
  // Call it if the caller itself read `batch` from the spool and delivers it, because it is claimed.
  void TakenElsewhere(const SpooledBatch& batch) { Handed(batch.segment, batch.last_of_segment); }
  // Gives the backlog the first unclaimed batch that the caller itself read from the spool.
  void PutBack(SpooledBatch batch);

  // These functions are about batches that an earlier process wrote to the spool: the batches that it did not claim,
  // and claimed batches that Recovery gave up. `foreign_attributed`: samples and losses of these batches, after this
  // process has read, dropped or given up the batch. `foreign_lost`: how many of these samples were lost.
  // `foreign_left`: the spool may have more batches that the earlier process did not claim.
  const SampleCounts& foreign_attributed() const { return foreign_attributed_; }
  void CountForeign(const SampleCounts& samples, const Accounting& with) {
    foreign_attributed_ += samples + with.TotalLost();
  }
  const SampleCounts& foreign_lost() const { return foreign_lost_; }
  bool foreign_left() const { return foreign_left_; }
  void OnDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool foreign);

  bool has_unreported_losses() const { return unreported_ != Accounting(); }
  bool empty() const { return waiting_.empty() && !peeked_ && (spool_ == nullptr || spool_->empty()); }
  bool memory_empty() const { return waiting_.empty(); }
  uint64_t memory_samples() const { return memory_samples_; }

 private:
  struct Waiting {
    Batch batch;
    bool foreign = false;
  };
  struct Open {
    uint32_t unsettled = 0;
    bool whole = false;  // the last batch of the segment was returned
  };

  static size_t BytesOf(const Batch& batch);
  bool IsForeign(const SpooledBatch& spooled) const { return spooled.session.session_id != own_; }
  Outgoing TakeFromSpool();
  void Handed(SegmentId segment, bool last);
  void PopOldest();
  void Peek();
  bool ClaimPeeked(const SpoolClaim& as);
  void TakeIntoMemory();

  const size_t memory_bytes_max_;
  Spool* const spool_;
  const std::array<uint8_t, 16> own_;
  const Clock& clock_;
  const Lost lost_;
  std::deque<Waiting> waiting_;
  size_t memory_bytes_ = 0;
  uint64_t memory_samples_ = 0;
  Accounting unreported_;
  std::optional<SpooledBatch> peeked_;
  absl::flat_hash_map<SegmentId, Open> open_;  // segments with returned batches that wait for Settled
  // The last claim: the segment, the session, and the sequence number of the next batch that needs no new claim.
  SegmentId claimed_segment_ = 0;
  std::array<uint8_t, 16> claimed_session_{};
  uint64_t claimed_next_ = 0;
  bool foreign_left_;
  SampleCounts foreign_attributed_, foreign_lost_;
  LogLimit log_limit_{kNsPerMinute};
};

}  // namespace tributary::intake
