#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "profile/batch.h"

namespace tributary::intake {

// A batch for a session, the amount that it adds to the session's accounting, and the number of samples that the node
// has captured and that are in no batch yet.
struct Outgoing {
  Batch batch;           // the session that takes it sets its sequence and accounting
  Accounting delta;      // losses and idle ticks since the previous batch; `captured` is ignored
  SampleCounts pending;  // captured by the node and not yet in any batch
  uint64_t segment = 0;  // of the spool; 0: none
  bool foreign = false;  // captured by an earlier process: not in the totals of this process
  // The session's totals before this batch, if the session continues after batches that this process never saw.
  std::optional<Accounting> base;
};

// The batches that one session has taken and that are not known to be durable, in order and without holes. A reconnect
// sends exactly the same batches again. Keeps the session's running totals. The `captured` that a batch reports is the
// samples and losses of all batches of the session up to it, plus `pending`. Not thread-safe.
class SendWindow {
 public:
  struct Entry {
    Batch batch;        // accounting: the session's totals. A rejected batch has no samples and no dictionary
    Accounting before;  // the session's totals before this batch
    Accounting delta;   // captured = samples + losses
    SampleCounts samples;
    SampleCounts pending;
    uint64_t segment = 0;
    bool foreign = false;
    size_t wire_bytes = 0;  // on this connection
  };

  // Continues a session after its last sequence number. `totals`: the session's totals, without pending samples.
  void Begin(uint64_t last_sequence, const Accounting& totals);

  uint64_t next_sequence() const { return last_sequence_ + 1; }
  const Accounting& totals() const { return totals_; }    // of all batches taken
  const Accounting& durable() const { return durable_; }  // of those acknowledged
  // `pending` of the newest batch that was not given up.
  const SampleCounts& reported_pending() const { return reported_pending_; }

  void Add(Outgoing out);

  // All batches up to `sequence` are durable. Calls `acked` for each entry that leaves the window. When this process
  // continues the session of a killed process, the reducer may know of later batches than this process does. Numbering
  // then continues after these batches.
  void Ack(uint64_t sequence, const std::function<void(const Entry&)>& acked);
  // Call it if the reducer refuses this batch for good. The batch's samples become losses, and an empty batch is sent
  // with its sequence number. Returns the number of samples.
  SampleCounts Reject(uint64_t sequence);
  // Call it while disconnected. Empties the window and returns its batches: their acknowledgements are no longer
  // awaited. The totals are then as if these batches had never been added. Settle adds those batches again that the
  // reducer later reports as durable.
  std::vector<Entry> GiveUp();
  void Settle(uint64_t durable_sequence);

  // Returns the next entry to send, or nullptr. The same entry stays next until Sent is called.
  Entry* Next() { return next_ < entries_.size() ? &entries_[next_] : nullptr; }
  void Sent(size_t wire_bytes);
  void Rewind();  // all entries are sent again

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
  SampleCounts reported_pending_, durable_pending_;
  Accounting totals_, durable_;
};

}  // namespace tributary::intake
