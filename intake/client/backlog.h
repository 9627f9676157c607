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

// Holds the batches that no session has taken yet, oldest first: batches in the spool, then batches in memory. Also
// holds the losses that no batch has reported yet. The batches have no sequence number, and the accounting of each is
// the amount that it adds to the totals. On the loop's thread.
class Backlog {
 public:
  // Called for each loss, for the process's totals and the log. The next batch from memory reports the loss to a
  // reducer.
  using Lost = std::function<void(LossReason, const SampleCounts&)>;

  // `spool` may be null. Before the first call of Next, the caller must read from the spool all batches that an earlier
  // process claimed. `own`: the session id that this process writes into segments.
  Backlog(size_t memory_bytes_max, Spool* spool, std::array<uint8_t, 16> own, const Clock& clock, Lost lost);

  void Add(Batch batch);
  // `with`: the losses and idle ticks that the lost samples' batches would have reported. `foreign`: an earlier process
  // captured the samples.
  void AddLoss(LossReason reason, const SampleCounts& samples, const Accounting& with, bool foreign = false);
  // Counts the samples of batches that were sent and never acknowledged as lost{in_doubt}. The losses that these
  // batches reported change to in_doubt too: with their original reasons they would make a sum that no component can
  // check.
  void AddDoubt(const SampleCounts& samples, const Accounting& with, bool foreign);
  enum class Reason {
    kLimit,  // memory may be over its limit
    kAway,   // no reducer takes batches
    kStop,   // the process ends
  };
  // Moves the oldest batches to the spool until memory is within its limit, and all batches if no reducer takes them.
  // Batches that neither memory nor the spool can hold are lost, the oldest first. While the spool takes no batch,
  // memory keeps as many as its limit allows; at a stop, all of these are lost.
  void Spill(Reason reason);

  // Returns the oldest batch, to be sent as `as` says: session, sequence number and totals. A batch from the spool is
  // first durably claimed for `as`. The caller fills in `pending`.
  std::optional<Outgoing> Next(const SpoolClaim& as);
  // Returns the losses that were not reported yet, and forgets them. The caller must report them.
  Accounting TakeLosses() { return std::exchange(unreported_, {}); }
  // A batch of `segment` is durable, or was given up.
  void Settled(SegmentId segment);
  // The caller took `batch` from the spool itself; the batch is claimed and delivered elsewhere.
  void TakenElsewhere(const SpooledBatch& batch) { Handed(batch.segment, batch.last_of_segment); }
  // Returns to the backlog the first unclaimed batch that the caller took from the spool itself.
  void PutBack(SpooledBatch batch);

  // Counts of batches that an earlier process wrote to the spool and did not claim. `foreign_attributed`: their samples
  // and losses, of the batches that this process has taken or dropped. `foreign_lost`: the lost samples among these.
  // `foreign_left`: more such batches may follow.
  const SampleCounts& foreign_attributed() const { return foreign_attributed_; }
  void CountForeign(const SampleCounts& samples, const Accounting& with) {
    foreign_attributed_ += samples + with.TotalLost();
  }
  const SampleCounts& foreign_lost() const { return foreign_lost_; }
  bool foreign_left() const { return foreign_left_; }
  void OnDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool foreign);

  bool has_unreported_losses() const { return unreported_ != Accounting(); }
  bool empty() const { return waiting_.empty() && !peeked_ && (spool_ == nullptr || spool_->empty()); }
  uint64_t memory_samples() const { return memory_samples_; }

 private:
  struct Waiting {
    Batch batch;
    bool foreign = false;
  };
  struct Open {
    uint32_t unsettled = 0;
    bool whole = false;  // the segment's last batch was returned
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
  absl::flat_hash_map<SegmentId, Open> open_;  // segments returned in part, or with batches that are not settled
  // The claim that covers the next batch of its segment.
  SegmentId claimed_segment_ = 0;
  std::array<uint8_t, 16> claimed_session_{};
  uint64_t claimed_next_ = 0;
  bool foreign_left_;
  SampleCounts foreign_attributed_, foreign_lost_;
  LogLimit log_limit_{kNsPerMinute};
};

}  // namespace tributary::intake
