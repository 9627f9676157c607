#include "intake/unacked.h"

#include <utility>

#include "base/status.h"

namespace tributary::intake {

void UnackedBatches::Add(Batch batch) {
  TRIBUTARY_CHECK(batch.dictionary != nullptr);
  TRIBUTARY_CHECK(last_sequence_ == 0 || batch.sequence == last_sequence_ + 1);
  last_sequence_ = batch.sequence;
  Entry entry;
  entry.samples = batch.samples.size();
  entry.batch = std::move(batch);
  bytes_ += entry.samples * sizeof(Sample);
  samples_ += entry.samples;
  entries_.push_back(std::move(entry));
  while (bytes_ > bytes_max_) {
    const size_t before = bytes_;
    DropOldest();
    if (bytes_ == before) break;  // the newest is kept whatever its size
  }
  TrimDropped();
  if (entries_.size() > kBatchesMax) {
    // A hole in the sequences, should it be unsent on a live connection: the reducer closes it, the next Hello heals.
    Lose(entries_.front(), LossReason::kBatchOverflow);
    PopFront();
  }
}

void UnackedBatches::DropOldest() {
  for (size_t i = 0; i + 1 < entries_.size(); ++i) {
    Entry& entry = entries_[i];
    if (entry.dropped || entry.batch.samples.empty()) continue;
    Drop(entry);
    if (!entry.sent) Lose(entry, LossReason::kBatchOverflow);
    return;
  }
}

void UnackedBatches::Drop(Entry& entry) {
  bytes_ -= entry.batch.samples.size() * sizeof(Sample);
  entry.batch.samples = {};
  entry.batch.dictionary.reset();
  entry.dropped = true;
}

void UnackedBatches::Lose(Entry& entry, LossReason reason) {
  const uint64_t samples = std::exchange(entry.samples, 0);
  samples_ -= samples;
  if (samples > 0) lost_(reason, samples);
}

void UnackedBatches::PopFront() {
  Entry& front = entries_.front();
  if (!front.dropped) Drop(front);
  samples_ -= front.samples;
  wire_bytes_ -= front.wire_bytes;
  entries_.pop_front();
  if (next_ > 0) --next_;
}

void UnackedBatches::TrimDropped() {
  if (announced_ != 0) return;
  while (!entries_.empty() && entries_.front().dropped && entries_.front().samples == 0) PopFront();
}

void UnackedBatches::Ack(uint64_t sequence) {
  while (!entries_.empty() && entries_.front().batch.sequence <= sequence) PopFront();
}

void UnackedBatches::Reject(uint64_t sequence) {
  for (Entry& entry : entries_) {
    if (entry.batch.sequence != sequence) continue;
    if (!entry.dropped) Drop(entry);
    Lose(entry, LossReason::kRejected);
  }
}

uint64_t UnackedBatches::Announce() {
  announced_ = last_sequence_ + 1;
  for (const Entry& entry : entries_) {
    if (entry.dropped) continue;
    announced_ = entry.batch.sequence;
    break;
  }
  return announced_;
}

void UnackedBatches::Welcomed(uint64_t durable_sequence) {
  Ack(durable_sequence);
  for (Entry& entry : entries_) {
    if (entry.dropped) Lose(entry, LossReason::kBatchOverflow);
    entry.sent = false;
    entry.wire_bytes = 0;
  }
  while (!entries_.empty() && entries_.front().batch.sequence < announced_) PopFront();
  next_ = 0;
  wire_bytes_ = 0;
}

void UnackedBatches::Disconnected() {
  announced_ = 0;
  next_ = 0;
  wire_bytes_ = 0;
  for (Entry& entry : entries_) entry.wire_bytes = 0;
  TrimDropped();
}

void UnackedBatches::Rewind() {
  for (Entry& entry : entries_) {
    // Sent, dropped, and now sent again without its samples: which of the two becomes durable cannot be known.
    if (entry.dropped) Lose(entry, LossReason::kInDoubt);
    entry.wire_bytes = 0;
  }
  next_ = 0;
  wire_bytes_ = 0;
}

void UnackedBatches::Sent(size_t wire_bytes) {
  Entry& entry = entries_[next_++];
  entry.sent = true;
  entry.wire_bytes = wire_bytes;
  wire_bytes_ += wire_bytes;
}

std::shared_ptr<const Dictionary> UnackedBatches::NextDictionary() const {
  for (size_t i = next_; i < entries_.size(); ++i) {
    if (entries_[i].batch.dictionary) return entries_[i].batch.dictionary;
  }
  return nullptr;
}

}  // namespace tributary::intake
