#include "kernel-collector/direct/batch_sender.h"

// The part of a BatchSender that uses the spool.

namespace tributary {

SampleCounts BatchSender::FindSpooled(std::span<const RequestSpool::Session> sessions) {
  SampleCounts found;
  if (spool_ == nullptr) return found;
  CountFound([this] { spool_->RetryUnread(); });
  for (const RequestSpool::Session& session : sessions) found += spool_->FoundOf(session);
  spool_->SetLost(sessions);
  return found;
}

void BatchSender::TickSpool() {
  CountFound([this] { spool_->Tick(); });
}

// Calls `work`. Counts the samples and events of earlier collectors that the spool finds in it.
void BatchSender::CountFound(absl::FunctionRef<void()> work) {
  const SampleCounts before = spool_->earlier() + spool_->found_lost();
  work();
  {
    const std::lock_guard lock(mutex_);
    totals_.earlier_waiting += spool_->earlier() + spool_->found_lost() - before;
  }
  TakeDropped();
}

bool BatchSender::ShouldSpill() const {
  if (spool_ == nullptr || clock_.Monotonic() < spill_not_before_) return false;
  if (!spool_->empty()) return true;
  const std::lock_guard lock(mutex_);
  return IsHalfFull();
}

// Moves all sets that are ready to the spool. Ends when the spool takes nothing more.
void BatchSender::Spill(bool flush, MonotonicNs deadline) {
  while (!IsOver(deadline) && TakeNext(flush)) {
    while (!sets_.empty()) {
      if (IsOver(deadline) || !AppendToSpool()) return;
      if (!flush) spool_->SyncIfDue();  // a stop syncs at its end, when everything is written
    }
  }
}

// Returns false if the spool does not take the request now. A request that it never takes is lost.
bool BatchSender::AppendToSpool() {
  const absl::Status status = spool_->Append(made_);
  TakeDropped();
  if (status.ok() || absl::IsOutOfRange(status)) {
    MakeNext();
    return true;
  }
  spill_not_before_.value = clock_.Monotonic().value + kSpoolTickNs;
  return false;
}

void BatchSender::TakeDropped() {
  const std::vector<RequestSpool::Dropped> dropped = spool_->TakeDropped();
  if (dropped.empty()) return;
  bool has_lost = false;
  SampleCounts overflow;
  std::unique_lock lock(mutex_);
  for (const RequestSpool::Dropped& each : dropped) {
    if (each.is_overflow) overflow += each.counts;
    if (!each.earlier) {
      Lose(each.reason, each.counts);
      has_lost = true;
      continue;
    }
    totals_.earlier_waiting -= each.counts;
    totals_.earlier_lost += each.counts;
    counters_.Lost(each.reason, each.counts);
  }
  UpdateGauges();
  lock.unlock();
  if (!overflow.empty()) WarnOfOverflow(overflow);
  if (has_lost) callbacks_.progressed();
}

// Sends the oldest request of the spool.
BatchSender::Step BatchSender::SendSpooled(MonotonicNs deadline) {
  absl::StatusOr<RequestSpool::Front> front = spool_->ReadFront();
  TakeDropped();
  if (absl::IsNotFound(front.status())) return Step::kNothing;
  if (!front.ok()) {
    not_before_.value = clock_.Monotonic().value + kSpoolTickNs;
    return Step::kFailed;
  }
  DirectRequest& request = front->request;
  if (request.events != nullptr && receiver_.events == nullptr) {
    // The encoder is another one than that of the earlier collector.
    spool_->DropFront(LossReason::kNotTaken);
    TakeDropped();
    return Step::kSent;
  }
  const bool was_in_doubt = request.in_doubt;
  spool_->MarkFront(true);
  if (!Send(request, front->earlier, deadline)) {
    spool_->MarkFront(was_in_doubt || request.in_doubt);
    return Step::kFailed;
  }
  spool_->PopFront();
  callbacks_.progressed();
  return Step::kSent;
}

}  // namespace tributary
