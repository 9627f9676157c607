#include "intake/client/backlog.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "base/status.h"

namespace tributary::intake {
namespace {

// Limits the number of batches, however small they are: 18 hours at one batch a second.
constexpr size_t kBatchesMax = 65'536;
constexpr size_t kBatchBytes = 256;  // of a batch, in addition to its samples and events

}  // namespace

Backlog::Backlog(size_t memory_bytes_max, Spool* spool, std::array<uint8_t, 16> own, const Clock& clock, Lost lost)
    : memory_bytes_max_(memory_bytes_max),
      spool_(spool),
      own_(own),
      clock_(clock),
      lost_(std::move(lost)),
      foreign_left_(spool != nullptr && !spool->empty()) {}

size_t Backlog::BytesOf(const Batch& batch) { return kBatchBytes + RecordBytes(batch); }

void Backlog::Add(Batch batch) {
  memory_bytes_ += BytesOf(batch);
  memory_samples_ += batch.samples.size();
  waiting_.push_back({std::move(batch), false});
}

void Backlog::AddLoss(LossReason reason, const SampleCounts& samples, const Accounting& with, bool foreign) {
  Accounting loss = with;
  loss.captured = {};
  loss.LostFor(reason) += samples;
  unreported_ += loss;
  if (foreign) foreign_lost_ += loss.TotalLost();
  if (!samples.empty()) lost_(reason, samples);
}

void Backlog::AddDoubt(const SampleCounts& samples, const Accounting& with, bool foreign) {
  Accounting doubt;
  doubt.idle = with.idle;
  doubt.LostFor(LossReason::kInDoubt) = with.TotalLost();
  AddLoss(LossReason::kInDoubt, samples, doubt, foreign);
}

void Backlog::PopOldest() {
  memory_bytes_ -= BytesOf(waiting_.front().batch);
  memory_samples_ -= waiting_.front().batch.samples.size();
  waiting_.pop_front();
}

void Backlog::Spill(Reason reason) {
  while (!waiting_.empty()) {
    const bool over = memory_bytes_ > memory_bytes_max_ || waiting_.size() > kBatchesMax;
    const bool must_lose = over && waiting_.size() > 1;  // if the spool does not take the oldest batch
    if (!must_lose && (spool_ == nullptr || reason == Reason::kLimit)) return;
    Batch& oldest = waiting_.front().batch;
    // `captured` becomes the amount that the batch adds to a session's totals. The base of a claim advances by this
    // amount from batch to batch.
    const SampleCounts samples = CountRecords(oldest);
    oldest.accounting.captured = samples + oldest.accounting.TotalLost();
    const bool foreign = waiting_.front().foreign;
    if (samples.empty()) {
      unreported_ += oldest.accounting;  // the batch reported nothing else
    } else if (spool_ == nullptr) {
      AddLoss(LossReason::kBatchOverflow, samples, oldest.accounting, foreign);
    } else if (absl::Status kept = spool_->Append(oldest); !kept.ok()) {
      if (!must_lose && reason != Reason::kStop) return;
      AddLoss(LossReason::kSpoolOverflow, samples, oldest.accounting, foreign);
      if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
        LogWarning(
            "samples lost reason=spool_overflow cause=\"{}\" suppressed={}: raise --spool-bytes-max, or free disk "
            "space for --spool-dir",
            Message(kept), held);
      }
    }
    PopOldest();
  }
}

void Backlog::Handed(SegmentId segment, bool last) {
  Open& open = open_[segment];
  ++open.unsettled;
  open.whole = last;
}

void Backlog::PutBack(SpooledBatch batch) {
  if (!IsForeign(batch)) foreign_left_ = false;
  peeked_ = std::move(batch);
}

void Backlog::Peek() {
  if (peeked_ || spool_ == nullptr) return;
  peeked_ = spool_->Next();
  if (!peeked_ || !IsForeign(*peeked_)) foreign_left_ = false;
}

Outgoing Backlog::TakeFromSpool() {
  SpooledBatch spooled = *std::exchange(peeked_, std::nullopt);
  Handed(spooled.segment, spooled.last_of_segment);
  Outgoing out;
  out.foreign = IsForeign(spooled);
  if (out.foreign) CountForeign(CountRecords(spooled.batch), spooled.batch.accounting);
  out.segment = spooled.segment;
  out.delta = spooled.batch.accounting;
  out.batch = std::move(spooled.batch);
  return out;
}

const Batch* Backlog::Oldest() {
  Peek();
  if (peeked_) return &peeked_->batch;
  return waiting_.empty() ? nullptr : &waiting_.front().batch;
}

bool Backlog::nearly_full() const {
  const auto nearly = [](uint64_t used, uint64_t max) { return used > max / 4 * 3; };
  return nearly(memory_bytes_, memory_bytes_max_) || nearly(waiting_.size(), kBatchesMax) ||
         (spool_ != nullptr && nearly(spool_->bytes(), spool_->bytes_max()));
}

std::optional<Outgoing> Backlog::Next(const SpoolClaim& as) {
  Peek();
  if (peeked_ && ClaimPeeked(as)) {
    Outgoing out = TakeFromSpool();
    Peek();
    return out;
  }
  if (waiting_.empty()) return std::nullopt;
  Waiting& oldest = waiting_.front();
  Outgoing out;
  out.delta = oldest.batch.accounting;
  out.foreign = oldest.foreign;
  // Losses of this process go only with a batch of this process: its own totals do not include the reports in a batch
  // of an earlier process.
  if (!out.foreign) out.delta += TakeLosses();
  memory_bytes_ -= BytesOf(oldest.batch);
  memory_samples_ -= oldest.batch.samples.size();
  out.batch = std::move(oldest.batch);
  waiting_.pop_front();
  return out;
}

bool Backlog::ClaimPeeked(const SpoolClaim& as) {
  const bool covered =
      peeked_->segment == claimed_segment_ && as.session_id == claimed_session_ && as.first_sequence == claimed_next_;
  if (!covered) {
    if (absl::Status claimed = spool_->Claim(peeked_->segment, peeked_->index, as); !claimed.ok()) {
      if (uint64_t held = 0; log_limit_.Allow(clock_.Monotonic(), &held)) {
        LogWarning(
            "cannot record in the spool which samples are sent cause=\"{}\" suppressed={}: these samples may be lost "
            "if the collector is killed now",
            Message(claimed), held);
      }
      // The claim of another session may hold for the whole file. Then the batches stay in the file.
      if (!open_.contains(peeked_->segment)) TakeIntoMemory();
      return false;
    }
  }
  claimed_segment_ = peeked_->segment;
  claimed_session_ = as.session_id;
  claimed_next_ = as.first_sequence + 1;
  return true;
}

// Moves the rest of the segment into memory. A disk that accepts no claim must not stop the delivery.
void Backlog::TakeIntoMemory() {
  const SegmentId segment = peeked_->segment;
  std::vector<Waiting> batches;
  while (peeked_ && peeked_->segment == segment) {
    const bool foreign = IsForeign(*peeked_), last = peeked_->last_of_segment;
    if (foreign) CountForeign(CountRecords(peeked_->batch), peeked_->batch.accounting);
    batches.push_back({std::move(peeked_->batch), foreign});
    peeked_.reset();
    if (last) break;
    Peek();
  }
  for (auto it = batches.rbegin(); it != batches.rend(); ++it) {
    memory_bytes_ += BytesOf(it->batch);
    memory_samples_ += it->batch.samples.size();
    waiting_.push_front(std::move(*it));
  }
  Handed(segment, /*last=*/true);
  Settled(segment);
}

void Backlog::Settled(SegmentId segment) {
  auto it = open_.find(segment);
  if (it == open_.end()) return;
  --it->second.unsettled;
  if (it->second.unsettled > 0 || !it->second.whole) return;
  open_.erase(it);
  spool_->Release(segment);
}

void Backlog::OnDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting, bool foreign) {
  if (foreign) CountForeign(samples, accounting);
  AddLoss(reason, samples, accounting, foreign);
}

}  // namespace tributary::intake
