#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <vector>

#include "profile/batch.h"

namespace tributary::intake {

// Returns the bytes of memory that the batch's samples and process events use.
inline size_t RecordBytes(const Batch& batch) {
  return batch.samples.size() * sizeof(Sample) + batch.events.size() * sizeof(ProcessEvent);
}

// A batch to be sent in a session.
struct Outgoing {
  Batch batch;           // SendWindow sets its sequence and accounting
  Accounting delta;      // losses and idle ticks that it adds to the session's totals; `captured` is ignored
  SampleCounts pending;  // captured by the node, and not yet sent or reported lost in any session
  uint64_t segment = 0;  // the file of the spool that the batch comes from; 0: none
  bool foreign = false;  // captured by an earlier process: not in the totals of this process
  // The session's totals before this batch. Set only if an earlier process sent the batches before it.
  std::optional<Accounting> base;
};

// The batches of one session that are not known to be durable, in order and without gaps. After a reconnect, exactly
// the same batches are sent again. Also has the session's running totals. The number `captured` in a batch is the
// samples and losses of all batches of the session up to this batch, plus `pending`. Not thread-safe.
class SendWindow {
 public:
  struct Entry {
    Batch batch;           // accounting: the session's totals. A rejected batch has no records and no dictionary
    Accounting before;     // the session's totals before this batch
    Accounting delta;      // captured = samples + losses
    SampleCounts samples;  // and process events
    SampleCounts pending;
    uint64_t segment = 0;
    bool foreign = false;
    bool without_events = false;  // it was last sent without its process events
    size_t wire_bytes = 0;        // size of its frames on this connection
  };

  // Continues a session after its last sequence number. `totals`: the session's totals, without pending samples.
  void Begin(uint64_t last_sequence, const Accounting& totals);

  uint64_t next_sequence() const { return last_sequence_ + 1; }
  const Accounting& totals() const { return totals_; }    // of all batches
  const Accounting& durable() const { return durable_; }  // of the acknowledged batches
  // `pending` of the newest batch that was not given up.
  const SampleCounts& reported_pending() const { return reported_pending_; }

  void Add(Outgoing out);

  // Call it when all batches up to `sequence` are durable. Calls `acked` for each entry that leaves the window. If this
  // process continues the session of a killed process, the reducer may have received batches with higher numbers than
  // this process knows. New batches then get higher numbers than these batches. If a batch was sent without its process
  // events, these become losses (not_taken). Returns their number.
  SampleCounts Ack(uint64_t sequence, const std::function<void(const Entry&)>& acked);
  // Call it if the reducer will never accept this batch. The batch's samples and events become losses, and an empty
  // batch is sent with its sequence number. Returns the number of these samples and events.
  SampleCounts Reject(uint64_t sequence);
  // Call it while disconnected. Empties the window and returns its batches. The client then no longer waits for their
  // acknowledgements. The totals change back, as if these batches had never been added. If the reducer later reports
  // some of them as durable, Settle adds these to the totals again.
  std::vector<Entry> GiveUp();
  void Settle(uint64_t durable_sequence);

  // Returns the next entry to send, or nullptr. The same entry stays next until Sent is called.
  Entry* Next() { return next_ < entries_.size() ? &entries_[next_] : nullptr; }
  // `without_events`: the entry was sent without its process events, because the reducer cannot store them.
  void Sent(size_t wire_bytes, bool without_events = false);
  void Rewind();  // all entries are sent again

  uint64_t first_sequence() const { return entries_.empty() ? next_sequence() : entries_.front().batch.sequence; }
  bool empty() const { return entries_.empty(); }
  uint64_t samples() const { return samples_; }
  size_t record_bytes() const { return record_bytes_; }  // of the memory that samples and process events use
  size_t wire_bytes() const { return wire_bytes_; }
  const std::deque<Entry>& entries() const { return entries_; }

 private:
  struct GivenUp {
    uint64_t sequence;
    Accounting delta;
    SampleCounts pending;
    SampleCounts untaken;  // its process events, if it was sent without them
  };
  static SampleCounts UntakenOf(const Entry& entry);
  std::deque<Entry> entries_;
  std::vector<GivenUp> given_up_;
  size_t next_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t samples_ = 0;
  size_t record_bytes_ = 0;
  size_t wire_bytes_ = 0;
  SampleCounts reported_pending_, durable_pending_;
  Accounting totals_, durable_;
};

}  // namespace tributary::intake
