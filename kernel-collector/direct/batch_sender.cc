#include "kernel-collector/direct/batch_sender.h"

#include <algorithm>
#include <string>

namespace tributary {

BatchSender::BatchSender(Options options, std::unique_ptr<otlp::ProfilesSender> sender, Callbacks callbacks,
                         const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      sender_(std::move(sender)),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      tables_(options_.table_bytes_max, clock, metrics),
      identity_(options_.identity),
      sent_(metrics.AddCounter("tributary_direct_samples_total",
                               "Samples that were sent to a receiver of OTLP, or printed, without a reducer")),
      requests_(metrics.AddCounter("tributary_direct_requests_total", "Requests that the receiver accepted")),
      failures_(metrics.AddCounter("tributary_direct_failures_total",
                                   "Requests that failed and are sent again: the receiver cannot be reached, or is "
                                   "overloaded")),
      repeated_(metrics.AddCounter("tributary_direct_repeated_samples_total",
                                   "Samples that the receiver may have twice: their request was sent again after an "
                                   "attempt that the receiver may have accepted")),
      rejected_profiles_(metrics.AddCounter("tributary_direct_rejected_profiles_total",
                                            "Profiles that the receiver rejected from requests that it accepted")),
      dropped_strings_(metrics.AddCounter("tributary_direct_dropped_strings_total",
                                          "Names that were left out because the request would have been too large")),
      left_out_tables_(metrics.AddCounter("tributary_direct_symbol_tables_left_out_total",
                                          "Symbol tables that were left out because too many waited to be opened, "
                                          "and are made again")),
      waiting_gauge_(metrics.AddGauge("tributary_direct_waiting_samples", "Samples that wait to be sent")),
      queue_bytes_gauge_(
          metrics.AddGauge("tributary_direct_queue_bytes", "Memory of the samples that wait to be sent")) {
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    lost_.push_back(&metrics.AddCounter("tributary_direct_lost_samples_total",
                                        "Samples that were lost because they could not be sent, by reason",
                                        {{"reason", std::string(LossReasonName(static_cast<LossReason>(i)))}}));
  }
}

void BatchSender::Push(SampleSet set) {
  const std::lock_guard lock(mutex_);
  totals_.waiting += CountSamples(set.samples);
  queue_bytes_ += set.bytes;
  queue_.push_back({std::move(set), clock_.Monotonic()});
  // The samples that are being sent are not in the queue. They stay. So does the newest set: else a set that is larger
  // than the queue would always be lost, even if the receiver accepts everything.
  while (queue_bytes_ > options_.queue_bytes_max && queue_.size() > 1) {
    queue_bytes_ -= queue_.front().set.bytes;
    Lose(LossReason::kBatchOverflow, CountSamples(queue_.front().set.samples));
    queue_.pop_front();
  }
  UpdateGauges();
}

void BatchSender::AddSymbols(const ExecutableId& id, absl::StatusOr<PackedTable> table) {
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = table.ok() ? table->stored_bytes() : 0;
  const bool has_room =
      new_tables_.size() < kTablesWaitingMax && new_table_bytes_ + bytes <= options_.new_table_bytes_max;
  if (!has_room && !new_tables_.empty()) return left_out_tables_.Add();
  new_table_bytes_ += bytes;
  new_tables_.emplace_back(id, std::move(table));
}

BatchSender::Totals BatchSender::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

// By value: `samples` may be totals_.waiting itself.
void BatchSender::Lose(LossReason reason, SampleCounts samples) {
  totals_.waiting -= samples;
  totals_.lost.LostFor(reason) += samples;
  lost_[static_cast<size_t>(reason)]->Add(samples.total());
}

void BatchSender::UpdateGauges() {
  waiting_gauge_.Set(static_cast<int64_t>(totals_.waiting.total()));
  queue_bytes_gauge_.Set(static_cast<int64_t>(queue_bytes_));
}

// Ends after the table during which `deadline` passed or Cancel was called. A large table takes tens of milliseconds.
void BatchSender::TakeTables(MonotonicNs deadline) {
  while (!cancelled_ && clock_.Monotonic() < deadline) {
    std::unique_lock lock(mutex_);
    if (new_tables_.empty()) return;
    const auto [id, table] = std::move(new_tables_.front());
    new_tables_.pop_front();
    if (table.ok()) new_table_bytes_ -= table->stored_bytes();
    lock.unlock();
    if (table.ok()) {
      tables_.Add(id, *table);
    } else {
      tables_.AddAbsent(id, table.status().code());
    }
  }
}

void BatchSender::AskForTables() {
  std::vector<ExecutableId> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (Waiting& waiting : queue_) {
      if (std::exchange(waiting.asked, true)) continue;
      for (const Executable& executable : waiting.set.definitions.executables) {
        if (executable.id.known() && tables_.IsWanted(executable.id)) wanted.push_back(executable.id);
      }
    }
  }
  const MonotonicNs now = clock_.Monotonic();
  for (const ExecutableId& id : wanted) {
    names_wait_.ShouldWait(id, now);  // the wait begins
    callbacks_.need_symbols(id);
  }
}

bool BatchSender::AwaitsNames(const SampleSet& set, MonotonicNs now) {
  return std::any_of(
      set.definitions.executables.begin(), set.definitions.executables.end(), [&](const Executable& executable) {
        return executable.id.known() && tables_.IsWanted(executable.id) && names_wait_.ShouldWait(executable.id, now);
      });
}

// Returns false if no samples are ready. Samples do not wait for names if the queue is half full.
bool BatchSender::TakeNext(bool flush) {
  if (current_ != nullptr) return true;
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return false;
  const MonotonicNs now = clock_.Monotonic();
  const Waiting& next = queue_.front();
  const bool may_wait = !flush && options_.names && queue_bytes_ <= options_.queue_bytes_max / 2 &&
                        now.value - next.since.value < kNamesWaitNs;
  if (may_wait && AwaitsNames(next.set, now)) return false;
  current_ = std::make_unique<Current>(std::move(queue_.front()));
  queue_.pop_front();
  current_->requests.emplace(
      current_->waiting.set,
      [this](const ExecutableId& id) {
        return options_.names ? tables_.Find(id) : std::shared_ptr<const SymbolTable>();
      },
      options_.builder);
  return true;
}

int64_t BatchSender::RunOnce() {
  TakeTables(MonotonicNs{INT64_MAX});
  if (options_.names) AskForTables();
  const MonotonicNs now = clock_.Monotonic();
  if (now < not_before_) return not_before_.value - now.value;
  if (!TakeNext(/*flush=*/false)) {
    const std::lock_guard lock(mutex_);
    return queue_.empty() ? kIdleNs : kNamesPollNs;
  }
  if (SendCurrent(MonotonicNs{INT64_MAX})) return 0;
  return std::max<int64_t>(not_before_.value - clock_.Monotonic().value, kNamesPollNs);
}

// Returns false if a request was not sent, and must be sent again.
bool BatchSender::SendCurrent(MonotonicNs deadline) {
  for (;;) {
    if (current_->made.request == nullptr) {
      current_->made = current_->requests->Next();
      if (current_->made.request == nullptr) break;
      in_doubt_ = false;
      identity_.first = next_number_;
      next_number_ = otlp::SetProfileIds(identity_, current_->made.request.get());
    }
    const int64_t left_ns = deadline.value - clock_.Monotonic().value;
    if (left_ns <= 0 || cancelled_ || !Send(std::min(options_.send_timeout_ns, left_ns))) return false;
    current_->made = {};
    callbacks_.progressed();
  }
  const std::lock_guard lock(mutex_);
  queue_bytes_ -= current_->waiting.set.bytes;
  current_.reset();
  UpdateGauges();
  return true;
}

// Returns true if this request needs no other attempt.
bool BatchSender::Send(int64_t timeout_ns) {
  const SetRequests::Made& made = current_->made;
  const otlp::SendResult result = sender_->Send(*made.request, identity_, timeout_ns);
  if (in_doubt_ && (result.status.ok() || result.in_doubt)) repeated_.Add(made.samples.total());
  in_doubt_ |= result.in_doubt;
  if (!result.status.ok() && result.may_retry) {
    if (!cancelled_) Delay(result);
    return false;
  }
  backoff_ns_.Reset();
  dropped_strings_.Add(made.dropped_strings);
  const bool is_sent = result.status.ok();
  {
    const std::lock_guard lock(mutex_);
    if (is_sent) {
      totals_.sent += made.samples;
      totals_.waiting -= made.samples;
    } else {
      Lose(LossReason::kRejected, made.samples);
    }
    UpdateGauges();
  }
  uint64_t held = 0;
  if (!is_sent) {
    if (refusal_log_.Allow(clock_.Monotonic(), &held)) {
      LogError("the receiver refused a request, its samples are lost samples={} error=\"{}\" suppressed={}",
               made.samples.total(), result.status.ToString(), held);
    }
    return true;
  }
  sent_.Add(made.samples.total());
  requests_.Add();
  // The receiver cannot have rejected more than it got.
  rejected_profiles_.Add(
      std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(result.rejected_items, 0)), made.samples.total()));
  if ((result.rejected_items > 0 || !result.message.empty()) && refusal_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("the receiver rejected profiles or sent a warning rejected_profiles={} message=\"{}\" suppressed={}",
               result.rejected_items, result.message, held);
  }
  return true;
}

// Sets the time of the next attempt.
void BatchSender::Delay(const otlp::SendResult& failure) {
  failures_.Add();
  const MonotonicNs now = clock_.Monotonic();
  not_before_.value = now.value + std::max(backoff_ns_.NextJittered(random_), failure.retry_after_ns.value_or(0));
  if (uint64_t held = 0; failure_log_.Allow(now, &held)) {
    LogWarning("cannot send samples, will try again error=\"{}\" suppressed={}", failure.status.ToString(), held);
  }
}

void BatchSender::Flush(MonotonicNs deadline) {
  const MonotonicNs now = clock_.Monotonic();
  TakeTables(MonotonicNs{now.value + (deadline.value - now.value) / 4});
  while (TakeNext(/*flush=*/true) && SendCurrent(deadline)) {
  }
  GiveUp();
}

void BatchSender::GiveUp() {
  {
    const std::lock_guard lock(mutex_);
    if (in_doubt_ && current_ != nullptr) Lose(LossReason::kInDoubt, current_->made.samples);
    Lose(LossReason::kShutdown, totals_.waiting);
    queue_.clear();
    queue_bytes_ = 0;
    UpdateGauges();
  }
  current_.reset();
  callbacks_.progressed();
}

void BatchSender::Cancel() {
  cancelled_ = true;
  sender_->Cancel();
}

}  // namespace tributary
