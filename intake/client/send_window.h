#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "profile/batch.h"

namespace tributary::intake {

// A batch on its way to a session: what it adds to the session's accounting, and what the node has captured beyond.
struct Outgoing {
  Batch batch;           // its sequence and accounting are set by the session that takes it
  Accounting delta;      // losses and idle ticks since the batch before; captured does not count
  SampleCounts pending;  // captured by the node and not yet in any batch
  uint64_t segment = 0;  // of the spool, 0 = none
  bool foreign = false;  // captured by an earlier process: not among this one's totals
  // The session's totals before this batch, where the session goes on behind batches that this process never saw.
  std::optional<Accounting> base;
};

// The batches that one session has taken and that are not known to be durable, in order and without holes: what is sent
// again after a reconnect is exactly what was sent before. Keeps the session's running totals: what a batch tells as
// captured is all that the session's batches account for up to it, samples and losses, plus `pending`. Not thread-safe.
class SendWindow {
 public:
  struct Entry {
    Batch batch;        // accounting: the session's totals. Rejected: no samples and no dictionary
    Accounting before;  // the session's totals before it
    Accounting delta;   // captured = samples + losses
    SampleCounts samples;
    SampleCounts pending;
    uint64_t segment = 0;
    bool foreign = false;
    size_t wire_bytes = 0;  // on this connection
  };

  // Goes on where a session stands: its last sequence and its totals without anything pending.
  void Begin(uint64_t last_sequence, const Accounting& totals);

  uint64_t next_sequence() const { return last_sequence_ + 1; }
  const Accounting& totals() const { return totals_; }                // of all batches taken
  const Accounting& durable() const { return durable_; }              // of those acknowledged
  const SampleCounts& pending_told() const { return pending_told_; }  // with the newest batch not given up

  void Add(Outgoing out);

  // Everything up to here is durable; `acked` sees each entry that goes. A session's reducer may know of later batches
  // than this process does (it goes on with what a killed one left): numbering continues behind them.
  void Ack(uint64_t sequence, const std::function<void(const Entry&)>& acked);
  // The reducer will never take this batch: its samples become losses, its number is sent empty. Returns the samples.
  SampleCounts Reject(uint64_t sequence);
  // Takes back every batch, while disconnected: their fate is not waited for. Totals are as if they had never been
  // added, until Settle, with what the reducer then says is durable, finds some of them stored after all.
  std::vector<Entry> GiveUp();
  void Settle(uint64_t durable_sequence);

  // The next to send, nullptr when there is none. It stays so until Sent is called.
  Entry* Next() { return next_ < entries_.size() ? &entries_[next_] : nullptr; }
  void Sent(size_t wire_bytes);
  void Rewind();  // all of it is sent again

  uint64_t first_sequence() const { return entries_.empty() ? next_sequence() : entries_.front().batch.sequence; }
  bool empty() const { return entries_.empty(); }
  uint64_t samples() const { return samples_; }
  size_t wire_bytes() const { return wire_bytes_; }
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  struct GivenUp {
    uint64_t sequence;
    Accounting delta;
    SampleCounts pending;
  };
  std::deque<Entry> entries_;
  std::vector<GivenUp> given_up_;
  size_t next_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t samples_ = 0;
  size_t wire_bytes_ = 0;
  SampleCounts pending_told_, durable_pending_;
  Accounting totals_, durable_;
};

}  // namespace tributary::intake
