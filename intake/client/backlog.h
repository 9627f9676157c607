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

// What no session has taken yet, oldest first: batches in the spool, then batches in memory; and losses that no batch
// has told yet. Batches here have no sequence number, and their accounting is what they add to the totals. On the
// loop's thread.
class Backlog {
 public:
  // For totals and the log; the loss is told with the next batch from memory.
  using Lost = std::function<void(LossReason, const SampleCounts&)>;

  // `spool` may be null. What is claimed in it must have been taken before Next is called. `own`: the session id that
  // this process writes into segments.
  Backlog(size_t memory_bytes_max, Spool* spool, std::array<uint8_t, 16> own, const Clock& clock, Lost lost);

  void Add(Batch batch);
  // `foreign`: of an earlier process.
  void AddLoss(LossReason reason, const SampleCounts& samples, const Accounting& with, bool foreign = false);
  // Sent and never answered. Whether the losses that the batch told were heard is in doubt as well: the reasons that
  // they had would make a sum that nobody can check.
  void AddDoubt(const SampleCounts& samples, const Accounting& with, bool foreign);
  // Moves the oldest to the spool, or gives them up, until memory holds no more than it may: all of it when `away`.
  void Spill(bool away);

  // The oldest, for the session, sequence number and totals that `as` names; what comes from the spool is durably
  // claimed for it first. `pending` is for the caller to fill.
  std::optional<Outgoing> Next(const SpoolClaim& as);
  // Losses not told yet, taken to be told.
  Accounting TakeLosses() { return std::exchange(untold_, {}); }
  // A batch of that segment is durable, or given up.
  void Settled(SegmentId segment);
  // What the caller took from the spool itself: a batch that is claimed and delivered elsewhere; the first that is not.
  void TakenElsewhere(const SpooledBatch& batch) { Handed(batch.segment, batch.last_of_segment); }
  void PutBack(SpooledBatch batch);

  // Samples and losses of unclaimed batches that an earlier process wrote, handed out or dropped so far; of them, those
  // lost; and whether there may be more.
  const SampleCounts& foreign_attributed() const { return foreign_attributed_; }
  void CountForeign(const SampleCounts& samples, const Accounting& with) {
    foreign_attributed_ += samples + with.TotalLost();
  }
  const SampleCounts& foreign_lost() const { return foreign_lost_; }
  bool foreign_left() const { return foreign_left_; }
  void OnDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool foreign);

  bool has_untold_losses() const { return untold_ != Accounting(); }
  bool empty() const { return waiting_.empty() && !peeked_ && (spool_ == nullptr || spool_->empty()); }
  uint64_t memory_samples() const { return memory_samples_; }

 private:
  struct Waiting {
    Batch batch;
    bool foreign = false;
  };
  struct Open {
    uint32_t unsettled = 0;
    bool whole = false;  // the last batch was handed out
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
  Accounting untold_;
  std::optional<SpooledBatch> peeked_;
  absl::flat_hash_map<SegmentId, Open> open_;  // handed out in part, or not settled
  // The claim that covers the next batch of its segment.
  SegmentId claimed_segment_ = 0;
  std::array<uint8_t, 16> claimed_session_{};
  uint64_t claimed_next_ = 0;
  bool foreign_left_;
  SampleCounts foreign_attributed_, foreign_lost_;
  LogLimit log_limit_{kNsPerMinute};
};

}  // namespace tributary::intake
