#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <utility>

#include "profile/batch.h"

namespace tributary::intake {

// The batches a client holds until the reducer has made them durable, and the exact fate of each sample: acknowledged
// or reported lost, once.
//
// Over its cap it drops the samples of the oldest batch but keeps the batch's place, so that sequences on the wire have
// no holes: such a batch is sent empty, or skipped by the next Hello. A batch that was already on the wire may have
// been stored: its samples count as lost only when the reducer says, on the next connection, that they were not. Not
// thread-safe.
class UnackedBatches {
 public:
  using Lost = std::function<void(LossReason, uint64_t samples)>;
  struct Entry {
    Batch batch;           // no samples and no dictionary once dropped
    uint64_t samples = 0;  // whose fate is open
    bool sent = false;     // since the reducer last said what it has
    bool dropped = false;
    size_t wire_bytes = 0;  // on this connection
  };
  // Batches held, dropped ones included: 18 hours at one a second.
  static constexpr size_t kBatchesMax = 65'536;

  UnackedBatches(size_t bytes_max, Lost lost) : bytes_max_(bytes_max), lost_(std::move(lost)) {}

  void Add(Batch batch);
  // Everything up to here is stored.
  void Ack(uint64_t sequence);
  // Its samples are lost: the reducer refuses them.
  void Reject(uint64_t sequence);

  // For Hello: the first batch that will be sent. From here to Disconnected, no batch is left out.
  uint64_t Announce();
  // Welcome: what was sent before and is not durable never will be; all that is left is sent again.
  void Welcomed(uint64_t durable_sequence);
  void Disconnected();
  // Everything is sent again on this connection.
  void Rewind();

  // The next to send, nullptr when there is none. It stays so until Sent is called.
  Entry* Next() { return next_ < entries_.size() ? &entries_[next_] : nullptr; }
  void Sent(size_t wire_bytes);
  // A dictionary for a batch that has none of its own: that of the next one which has.
  std::shared_ptr<const Dictionary> NextDictionary() const;

  bool empty() const { return entries_.empty(); }
  uint64_t samples() const { return samples_; }
  size_t wire_bytes() const { return wire_bytes_; }

 private:
  void DropOldest();
  void Drop(Entry& entry);
  void Lose(Entry& entry, LossReason reason);
  void PopFront();
  void TrimDropped();

  const size_t bytes_max_;
  Lost lost_;
  std::deque<Entry> entries_;  // sequences without gaps
  size_t next_ = 0;            // index of the next to send
  size_t bytes_ = 0;           // of samples
  uint64_t samples_ = 0;
  size_t wire_bytes_ = 0;
  uint64_t last_sequence_ = 0;
  uint64_t announced_ = 0;  // 0 while disconnected
};

}  // namespace tributary::intake
