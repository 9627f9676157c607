#include "kernel-collector/direct/batch_sender.h"

#include <algorithm>
#include <vector>

#include "profile/named_code.h"

namespace tributary {

BatchSender::BatchSender(Options options, Receiver receiver, std::unique_ptr<RequestSpool> spool, Callbacks callbacks,
                         const Clock& clock, Metrics& metrics)
    : options_(std::move(options)),
      receiver_(std::move(receiver)),
      spool_(std::move(spool)),
      callbacks_(std::move(callbacks)),
      clock_(clock),
      tables_(options_.table_bytes_max, clock, metrics),
      maker_(options_.builder, options_.identity, options_.event_identity),
      counters_(metrics) {
  if (spool_ == nullptr) return;
  totals_.earlier_waiting = spool_->earlier() + spool_->found_lost();
  TakeDropped();
}

void BatchSender::Push(SampleSet set) {
  SampleCounts lost;
  std::unique_lock lock(mutex_);
  totals_.waiting += CountRecords(set);
  queue_bytes_ += set.bytes;
  queue_.push_back({std::move(set), clock_.Monotonic()});
  // The sets that are being sent are not in the queue. They stay, and so does the newest set.
  while (queue_bytes_ > options_.queue_bytes_max && queue_.size() > 1) {
    queue_bytes_ -= queue_.front().set.bytes;
    const SampleCounts oldest = CountRecords(queue_.front().set);
    Lose(spool_ != nullptr ? LossReason::kSpoolOverflow : LossReason::kBatchOverflow, oldest);
    lost += oldest;
    queue_.pop_front();
  }
  UpdateGauges();
  lock.unlock();
  if (lost.empty()) return;
  WarnOfOverflow(lost);
  callbacks_.progressed();
}

void BatchSender::WarnOfOverflow(const SampleCounts& lost) {
  uint64_t held = 0;
  std::unique_lock lock(mutex_);
  if (!overflow_log_.Allow(clock_.Monotonic(), &held)) return;
  lock.unlock();
  LogWarning(
      "the oldest samples are lost, because the receiver is too slow or does not answer: {} samples={} events={} "
      "suppressed={}",
      spool_ != nullptr ? "make it faster, or raise --spool-bytes-max or --intake-memory-max"
                        : "make it faster, set --spool-dir, or raise --intake-memory-max",
      lost.total(), lost.events(), held);
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

// Returns the executables whose symbol tables are wanted. Source files have none.
std::vector<ExecutableId> BatchSender::WantedBy(const SampleSet& set) const {
  std::vector<ExecutableId> wanted;
  const std::vector<Executable>& executables = set.definitions.executables;
  const std::vector<bool> is_named = FindNamedCode(set.definitions, /*first=*/0);
  for (size_t i = 0; i < executables.size(); ++i) {
    const ExecutableId& id = executables[i].id;
    if (id.known() && !is_named[i] && tables_.IsWanted(id)) wanted.push_back(id);
  }
  return wanted;
}

void BatchSender::AskForTables() {
  std::vector<ExecutableId> wanted;
  {
    const std::lock_guard lock(mutex_);
    for (Waiting& waiting : queue_) {
      if (std::exchange(waiting.asked, true)) continue;
      for (const ExecutableId& id : WantedBy(waiting.set)) wanted.push_back(id);
    }
  }
  const MonotonicNs now = clock_.Monotonic();
  for (const ExecutableId& id : wanted) {
    names_wait_.ShouldWait(id, now);  // the wait begins
    callbacks_.need_symbols(id);
  }
}

bool BatchSender::AwaitsNames(const SampleSet& set, MonotonicNs now) {
  const std::vector<ExecutableId> wanted = WantedBy(set);
  return std::any_of(wanted.begin(), wanted.end(),
                     [&](const ExecutableId& id) { return names_wait_.ShouldWait(id, now); });
}

// Returns how long the oldest set still waits for others, and they for their names. While the spool is in use, sets do
// not wait for others: on disk they survive a kill.
int64_t BatchSender::PatienceNs() const {
  if (queue_.empty() || is_first_ || IsHalfFull() || (spool_ != nullptr && !spool_->empty())) return 0;
  return std::max<int64_t>(queue_.front().since.value + options_.together_wait_ns - clock_.Monotonic().value, 0);
}

bool BatchSender::HasNames(const Waiting& waiting) {
  const MonotonicNs now = clock_.Monotonic();
  const int64_t most_ns = is_first_ ? kFirstNamesWaitNs : kNamesWaitNs;
  const bool may_wait = options_.names && !IsHalfFull() && now.value - waiting.since.value < most_ns;
  return !may_wait || !AwaitsNames(waiting.set, now);
}

// Returns how many sets can be sent together now.
size_t BatchSender::CountReady() {
  const bool is_patient = PatienceNs() > 0;
  if (is_patient && queue_.size() < options_.sets_together) return 0;
  const size_t most = std::min(queue_.size(), options_.sets_together);
  size_t ready = 0;
  while (ready < most && HasNames(queue_[ready])) ++ready;
  return is_patient && ready < most ? 0 : ready;
}

// Begins with the next sets, unless there are some. Returns false if none is ready.
bool BatchSender::TakeNext(bool flush) {
  if (!sets_.empty()) return true;
  std::unique_lock lock(mutex_);
  for (size_t left = flush ? std::min(queue_.size(), options_.sets_together) : CountReady(); left > 0; --left) {
    sets_.push_back(std::move(queue_.front().set));
    queue_.pop_front();
  }
  if (sets_.empty()) return false;
  is_first_ = false;
  lock.unlock();
  maker_.Begin(
      sets_,
      [this](const ExecutableId& id) {
        return options_.names ? tables_.Find(id) : std::shared_ptr<const SymbolTable>();
      },
      [this] { tables_.LimitPages(); });
  MakeNext();
  return !sets_.empty();
}

// Makes the next request of the sets. If there is none, the sets are done.
void BatchSender::MakeNext() {
  made_ = maker_.Next();
  if (!made_.empty()) return;
  tables_.EndLookups();
  const std::lock_guard lock(mutex_);
  for (const SampleSet& set : sets_) queue_bytes_ -= set.bytes;
  sets_.clear();
  UpdateGauges();
}

int64_t BatchSender::IdleNs() const {
  const std::lock_guard lock(mutex_);
  const int64_t most_ns = spool_ != nullptr ? kSpoolTickNs : kIdleNs;
  if (queue_.empty()) return most_ns;
  return queue_.size() < options_.sets_together ? std::clamp(PatienceNs(), kNamesPollNs, most_ns) : kNamesPollNs;
}

int64_t BatchSender::RunOnce() {
  TakeTables(MonotonicNs{INT64_MAX});
  if (options_.names) AskForTables();
  if (spool_ != nullptr) TickSpool();
  if (ShouldSpill()) Spill(/*flush=*/false, MonotonicNs{INT64_MAX});
  const int64_t delay_ns = not_before_.value - clock_.Monotonic().value;
  if (delay_ns > 0) return spool_ != nullptr ? std::min(delay_ns, IdleNs()) : delay_ns;
  switch (SendNext(MonotonicNs{INT64_MAX}, /*flush=*/false)) {
    case Step::kNothing:
      return IdleNs();
    case Step::kSent:
      return 0;
    case Step::kFailed:
      break;
  }
  if (spool_ != nullptr) return cancelled_ ? kNamesPollNs : 0;  // the next call moves the queue to the spool
  return std::max<int64_t>(not_before_.value - clock_.Monotonic().value, kNamesPollNs);
}

BatchSender::Step BatchSender::SendNext(MonotonicNs deadline, bool flush) {
  if (spool_ != nullptr && !spool_->empty()) {
    if (const Step step = SendSpooled(deadline); step != Step::kNothing) return step;
  }
  if (!TakeNext(flush)) return Step::kNothing;
  if (Send(made_, /*earlier=*/false, deadline)) {
    MakeNext();
    callbacks_.progressed();
    return Step::kSent;
  }
  // In the spool, the request stays as it was sent, also if this process is killed.
  if (spool_ != nullptr) AppendToSpool();
  return Step::kFailed;
}

// Returns true if this request needs no other attempt.
bool BatchSender::Send(DirectRequest& request, bool earlier, MonotonicNs deadline) {
  const int64_t left_ns = deadline.value - clock_.Monotonic().value;
  if (left_ns <= 0 || cancelled_) return false;
  const int64_t timeout_ns = std::min(options_.send_timeout_ns, left_ns);
  const otlp::SendResult result = request.samples != nullptr
                                      ? receiver_.samples->Send(*request.samples, request.identity, timeout_ns)
                                      : receiver_.events->SendLogs(*request.events, timeout_ns);
  if (request.in_doubt && (result.status.ok() || result.in_doubt)) counters_.Repeated(request.counts);
  request.in_doubt |= result.in_doubt;
  if (!result.status.ok() && result.may_retry) {
    if (!cancelled_) Delay(result);
    return false;
  }
  backoff_ns_.Reset();
  CountAnswer(request, earlier, result);
  return true;
}

void BatchSender::CountAnswer(const DirectRequest& request, bool earlier, const otlp::SendResult& result) {
  const bool is_sent = result.status.ok();
  const SampleCounts lost = is_sent ? PartOf(request.counts, result.left_out_samples) : request.counts;
  const SampleCounts sent = request.counts - lost;
  {
    const std::lock_guard lock(mutex_);
    if (earlier) {
      totals_.earlier_waiting -= request.counts;
      totals_.earlier_sent += sent;
      totals_.earlier_lost += lost;
      counters_.Lost(LossReason::kRejected, lost);
    } else {
      totals_.sent += sent;
      totals_.waiting -= sent;
      Lose(LossReason::kRejected, lost);
    }
    UpdateGauges();
  }
  uint64_t held = 0;
  if (!is_sent) {
    if (refusal_log_.Allow(clock_.Monotonic(), &held)) {
      LogError(
          "the receiver refused a request, its samples and events are lost samples={} events={} error=\"{}\" "
          "suppressed={}",
          request.counts.total(), request.counts.events(), result.status.ToString(), held);
    }
    return;
  }
  counters_.dropped_strings.Add(request.dropped_strings + result.dropped_strings);
  counters_.samples.Add(sent.total());
  counters_.events.Add(sent.events());
  if (earlier) counters_.Earlier(sent);
  counters_.requests.Add();
  // The receiver cannot have rejected more than it got.
  counters_.rejected_items.Add(std::min<uint64_t>(static_cast<uint64_t>(std::max<int64_t>(result.rejected_items, 0)),
                                                  request.counts.total() + request.counts.events()));
  if ((result.rejected_items > 0 || !result.message.empty()) && refusal_log_.Allow(clock_.Monotonic(), &held)) {
    LogWarning("the receiver rejected profiles or records, or sent a warning rejected={} message=\"{}\" suppressed={}",
               result.rejected_items, result.message, held);
  }
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
  const int64_t part_ns = std::max<int64_t>(deadline.value - now.value, 0) / 4;
  TakeTables(MonotonicNs{now.value + part_ns});
  // If the receiver does not answer, its timeout must not take the time in which the rest is written.
  if (spool_ != nullptr && (!spool_->empty() || now < not_before_)) Spill(/*flush=*/true, deadline);
  const MonotonicNs send_by{spool_ != nullptr ? deadline.value - part_ns : deadline.value};
  while (!IsOver(send_by) && SendNext(send_by, /*flush=*/true) == Step::kSent) {
  }
  if (spool_ != nullptr) Spill(/*flush=*/true, deadline);
  GiveUp();
}

void BatchSender::GiveUp() {
  {
    const std::lock_guard lock(mutex_);
    if (made_.in_doubt) Lose(LossReason::kInDoubt, made_.counts);
    Lose(LossReason::kShutdown, spool_ != nullptr ? totals_.waiting - spool_->own() : totals_.waiting);
    queue_.clear();
    queue_bytes_ = 0;
    UpdateGauges();
  }
  made_ = {};
  sets_.clear();
  callbacks_.progressed();
}

void BatchSender::Cancel() {
  cancelled_ = true;
  receiver_.samples->Cancel();
}

}  // namespace tributary
