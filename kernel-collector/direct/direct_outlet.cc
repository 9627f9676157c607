#include "kernel-collector/direct/direct_outlet.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

// The end of a stop: the sender's thread then has this time to notice that it was cancelled.
constexpr int64_t kCancelMs = 100;

}  // namespace

DirectOutlet::DirectOutlet(Loop& loop, const DirectOptions& options, PinnedSession& pins,
                           const intake::MetadataFeed& feed, const Clock& clock, Metrics& metrics,
                           std::function<void(const ExecutableId&)> need_symbols)
    : loop_(loop),
      pins_(pins),
      clock_(clock),
      resources_(options.session, feed),
      session_id_(options.session.session_id),
      receiver_(options.receiver.ToString()),
      need_symbols_(std::move(need_symbols)),
      lost_events_(metrics.AddCounter("tributary_direct_lost_process_events_total",
                                      "Process events that were lost because they are not sent without a reducer",
                                      {{"reason", std::string(LossReasonName(LossReason::kNotTaken))}})),
      predecessor_lost_(
          metrics.AddCounter("tributary_direct_predecessor_lost_samples_total",
                             "Samples that an earlier collector had captured and not sent when it was killed")),
      settle_timer_(std::make_unique<Timer>(loop, [this] { Settle(); })),
      deadline_timer_(std::make_unique<Timer>(loop, [this] { Cancel(); })) {}

absl::StatusOr<std::unique_ptr<DirectOutlet>> DirectOutlet::Open(
    Loop& loop, DirectOptions options, PinnedSession& pins, const intake::MetadataFeed& feed, const Clock& clock,
    Metrics& metrics, std::function<void(const ExecutableId&)> need_symbols) {
  ASSIGN_OR_RETURN(DirectSender sender, MakeDirectSender(options.receiver, options.variables, clock));
  std::unique_ptr<DirectOutlet> outlet(
      new DirectOutlet(loop, options, pins, feed, clock, metrics, std::move(need_symbols)));
  if (options.metrics_interval_ns > 0) {
    ASSIGN_OR_RETURN(std::unique_ptr<otlp::MetricsExport> sent,
                     MakeDirectMetrics(options.receiver, options.variables, options.session.host_name,
                                       options.metrics_interval_ns, metrics, clock));
    outlet->metrics_thread_ = std::make_unique<otlp::PassThread<otlp::MetricsExport>>(std::move(sent));
  }
  BatchSender::Options sending;
  sending.queue_bytes_max = options.queue_bytes_max;
  sending.table_bytes_max = options.table_bytes_max;
  sending.names = options.names;
  sending.send_timeout_ns = sender.timeout_ns;
  sending.builder = std::move(sender.builder);
  sending.identity.sender = options.session.host_name;
  sending.identity.session = options.session.session_id;
  DirectOutlet* borrowed = outlet.get();
  // The thread ends before the outlet does.
  BatchSender::Callbacks callbacks{
      .need_symbols =
          [borrowed](const ExecutableId& id) {
            borrowed->loop_.Post(borrowed->scope_.Wrap([borrowed, id] { borrowed->need_symbols_(id); }));
          },
      .progressed = [borrowed] { borrowed->loop_.Post(borrowed->scope_.Wrap([borrowed] { borrowed->Pin(); })); }};
  outlet->thread_ = std::make_unique<SenderThread>(std::make_unique<BatchSender>(
      std::move(sending), std::move(sender.sender), std::move(callbacks), clock, metrics));
  return outlet;
}

// An earlier collector was killed, and its samples in memory with it. No receiver is told, so they are only counted
// here. If this start failed, the next one must report them.
void DirectOutlet::OnSampling() {
  if (!pins_.predecessor()) return;
  const Predecessor& from = *pins_.predecessor();
  const SampleCounts lost = from.unattributed() - from.accounting.TotalLost();
  LogWarning("an earlier collector ended without sending all samples captured={} lost={} lost_before={}",
             from.accounting.captured.total(), lost.total(), from.accounting.TotalLost().total());
  predecessor_lost_.Add(lost.total());
  pins_.ForgetPredecessor({});
}

void DirectOutlet::Start() {
  Pin();
  thread_->Start();
  if (metrics_thread_) metrics_thread_->Start();
}

absl::Status DirectOutlet::Take(Batch batch) {
  const uint64_t events = CountRecords(batch).events();
  events_not_taken_ += events;
  lost_events_.Add(events);
  if (batch.samples.empty()) return absl::OkStatus();
  if (settling_.size() >= kSettlingMax) SettleFirst();
  settling_samples_ += batch.samples.size();
  settling_.push_back({std::move(batch), clock_.Monotonic()});
  if (settling_.size() == 1) settle_timer_->StartOnce(kSettleNs / kNsPerMs);
  return absl::OkStatus();
}

void DirectOutlet::SettleFirst() {
  settling_samples_ -= settling_.front().batch.samples.size();
  thread_->sender().Push(CopySamples(settling_.front().batch, [this](const Process& process, const Dictionary& texts) {
    return resources_.Of(process, texts);
  }));
  settling_.pop_front();
  thread_->Wake();
}

void DirectOutlet::Settle() {
  const MonotonicNs now = clock_.Monotonic();
  while (!settling_.empty() && now.value - settling_.front().since.value >= kSettleNs) SettleFirst();
  if (settling_.empty()) return;
  const int64_t wait_ns = settling_.front().since.value + kSettleNs - now.value;
  settle_timer_->StartOnce(static_cast<uint64_t>(wait_ns / kNsPerMs) + 1);
}

void DirectOutlet::SendSymbols(const ExecutableId& id, PackedTable table) {
  thread_->sender().AddSymbols(id, std::move(table));
  thread_->Wake();
}

void DirectOutlet::SendNoSymbols(const ExecutableId& id, const absl::Status& why) {
  LogDebug("no names for an executable build_id={} cause=\"{}\"", id.ToString(), Message(why));
  thread_->sender().AddSymbols(id, why);
  thread_->Wake();
}

Outlet::Totals DirectOutlet::totals() const {
  const BatchSender::Totals of_sender = thread_->sender().totals();
  Totals out{.lost = of_sender.lost,
             .sent_samples = of_sender.sent.total(),
             .sent_events = 0,
             .waiting_samples = of_sender.waiting.total() + settling_samples_};
  out.lost.LostFor(LossReason::kNotTaken).AddEvents(events_not_taken_);
  return out;
}

// Remembers what was sent or counted as lost, in case that this process is killed.
void DirectOutlet::Pin() {
  const BatchSender::Totals done = thread_->sender().totals();
  pins_.Set(0, {session_id_, done.sent + done.lost.TotalLost()}, /*asked=*/true);
}

void DirectOutlet::Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) {
  settle_timer_->Stop();
  while (!settling_.empty()) SettleFirst();
  const int64_t cancel_ms = std::max<int64_t>(timeout_ms - kCancelMs, 0);
  deadline_timer_->StartOnce(static_cast<uint64_t>(cancel_ms));
  const MonotonicNs deadline{clock_.Monotonic().value + cancel_ms * kNsPerMs};
  thread_->Flush(deadline, [this, deadline, done = std::move(done)] {
    loop_.Post(scope_.Wrap([this, deadline, done] {
      pins_.Finish(/*undelivered=*/false);  // every sample was sent or is counted as lost
      FlushMetrics(deadline, [this, done] {
        deadline_timer_->Stop();
        done(0);
      });
    }));
  });
}

void DirectOutlet::Cancel() {
  thread_->sender().Cancel();
  if (metrics_thread_) metrics_thread_->work().Cancel();
}

// The last values are those after the last samples.
void DirectOutlet::FlushMetrics(MonotonicNs deadline, std::function<void()> done) {
  if (!metrics_thread_) return done();
  metrics_thread_->work().EndBy(deadline);
  metrics_thread_->Flush(deadline, [this, done = std::move(done)] { loop_.Post(scope_.Wrap(done)); });
}

}  // namespace tributary
