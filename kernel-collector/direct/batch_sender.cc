#include "kernel-collector/direct/batch_sender.h"

#include <algorithm>

namespace tributary {

BatchSender::BatchSender(Options options, Receiver receiver, Callbacks callbacks, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      receiver_(std::move(receiver)),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      tables_(options_.table_bytes_max, clock, metrics),
      maker_(options_.builder, options_.identity, options_.event_identity),
      counters_(metrics) {}

void BatchSender::Push(SampleSet set) {
  const std::lock_guard lock(mutex_);
  totals_.waiting += CountRecords(set);
  queue_bytes_ += set.bytes;
  queue_.push_back({std::move(set), clock_.Monotonic()});
  // The set that is being sent is not in the queue. It stays. So does the newest set: else a set that is larger
  // than the queue would always be lost, even if the receiver accepts everything.
  while (queue_bytes_ > options_.queue_bytes_max && queue_.size() > 1) {
    queue_bytes_ -= queue_.front().set.bytes;
    Lose(LossReason::kBatchOverflow, CountRecords(queue_.front().set));
    queue_.pop_front();
  }
  UpdateGauges();
}

void BatchSender::AddSymbols(const ExecutableId& id, absl::StatusOr<PackedTable> table) {
  const std::lock_guard lock(mutex_);
  const uint64_t bytes = table.ok() ? table->stored_bytes() : 0;
  const bool has_room =
      new_tables_.size() < kTablesWaitingMax && new_table_bytes_ + bytes <= options_.new_table_bytes_max;
  if (!has_room && !new_tables_.empty()) return counters_.left_out_tables.Add();
  new_table_bytes_ += bytes;
  new_tables_.emplace_back(id, std::move(table));
}

BatchSender::Totals BatchSender::totals() const {
  const std::lock_guard lock(mutex_);
  return totals_;
}

// By value: `counts` may be totals_.waiting itself.
void BatchSender::Lose(LossReason reason, SampleCounts counts) {
  totals_.waiting -= counts;
  totals_.lost.LostFor(reason) += counts;
  counters_.Lost(reason, counts);
}

void BatchSender::UpdateGauges() {
  counters_.waiting_samples.Set(static_cast<int64_t>(totals_.waiting.total()));
  counters_.waiting_events.Set(static_cast<int64_t>(totals_.waiting.events()));
  counters_.queue_bytes.Set(static_cast<int64_t>(queue_bytes_));
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

// Returns false if no set is ready. Samples do not wait for names if the queue is half full.
bool BatchSender::TakeNext(bool flush) {
  if (set_ != nullptr) return true;
  const std::lock_guard lock(mutex_);
  if (queue_.empty()) return false;
  const MonotonicNs now = clock_.Monotonic();
  const Waiting& next = queue_.front();
  const bool may_wait = !flush && options_.names && queue_bytes_ <= options_.queue_bytes_max / 2 &&
                        now.value - next.since.value < kNamesWaitNs;
  if (may_wait && AwaitsNames(next.set, now)) return false;
  set_ = std::make_unique<const SampleSet>(std::move(queue_.front().set));
  queue_.pop_front();
  maker_.Begin(*set_, [this](const ExecutableId& id) {
    return options_.names ? tables_.Find(id) : std::shared_ptr<const SymbolTable>();
  });
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
    if (request_.empty()) request_ = maker_.Next();
    if (request_.empty()) break;
    const int64_t left_ns = deadline.value - clock_.Monotonic().value;
    if (left_ns <= 0 || cancelled_ || !Send(std::min(options_.send_timeout_ns, left_ns))) return false;
    request_ = {};
    callbacks_.progressed();
  }
  const std::lock_guard lock(mutex_);
  queue_bytes_ -= set_->bytes;
  set_.reset();
  UpdateGauges();
  return true;
}

// Returns true if this request needs no other attempt.
bool BatchSender::Send(int64_t timeout_ns) {
  const otlp::SendResult result = request_.samples != nullptr
                                      ? receiver_.samples->Send(*request_.samples, request_.identity, timeout_ns)
                                      : receiver_.events->SendLogs(*request_.events, timeout_ns);
  if (request_.in_doubt && (result.status.ok() || result.in_doubt)) counters_.Repeated(request_.counts);
  request_.in_doubt |= result.in_doubt;
  if (!result.status.ok() && result.may_retry) {
    if (!cancelled_) Delay(result);
    return false;
  }
  backoff_ns_.Reset();
  counters_.dropped_strings.Add(request_.dropped_strings);
  const bool is_sent = result.status.ok();
  {
    const std::lock_guard lock(mutex_);
    if (is_sent) {
      totals_.sent += request_.counts;
      totals_.waiting -= request_.counts;
    } else {
      Lose(LossReason::kRejected, request_.counts);
    }
    UpdateGauges();
  }
  uint64_t held = 0;
  if (!is_sent) {
    if (refusal_log_.Allow(clock_.Monotonic(), &held)) {
      LogError(
          "the receiver refused a request, its samples and events are lost samples={} events={} error=\"{}\" "
          "suppressed={}",
          request_.counts.total(), request_.counts.events(), result.status.ToString(), held);
    }
    return true;
  }
  counters_.samples.Add(request_.counts.total());
  counters_.events.Add(request_.counts.events());
  counters_.requests.Add();
  counters_.rejected_items.Add(static_cast<uint64_t>(std::max<int64_t>(result.rejected_items, 0)));
  if ((result.rejected_items > 0 || !result.message.empty()) && refusal_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("the receiver rejected profiles or records, or sent a warning rejected={} message=\"{}\" suppressed={}",
               result.rejected_items, result.message, held);
  }
  return true;
}

// Sets the time of the next attempt.
void BatchSender::Delay(const otlp::SendResult& failure) {
  counters_.failures.Add();
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
    if (request_.in_doubt) Lose(LossReason::kInDoubt, request_.counts);
    Lose(LossReason::kShutdown, totals_.waiting);
    queue_.clear();
    queue_bytes_ = 0;
    UpdateGauges();
  }
  request_ = {};
  set_.reset();
  callbacks_.progressed();
}

void BatchSender::Cancel() {
  cancelled_ = true;
  receiver_.samples->Cancel();
}

}  // namespace tributary
