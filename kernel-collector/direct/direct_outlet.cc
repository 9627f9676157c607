#include "kernel-collector/direct/direct_outlet.h"

#include <algorithm>
#include <utility>

#include "base/log.h"
#include "base/status.h"
#include "intake/spool/spool_directory.h"
#include "kernel-collector/direct/request_spool.h"

namespace tributary {
namespace {

// The end of a stop: the sender's thread then has this time to notice that it was cancelled.
constexpr int64_t kCancelMs = 100;
// The last metrics have at most this time after the last samples. So a receiver that takes no metrics does not use up
// the whole time of a stop.
constexpr int64_t kLastMetricsNs = 1500 * kNsPerMs;

absl::StatusOr<std::unique_ptr<RequestSpool>> OpenSpool(const DirectOptions& options, const Clock& clock,
                                                        Metrics& metrics) {
  if (options.spool_dir.empty() || options.receiver.is_console) return nullptr;
  ASSIGN_OR_RETURN(std::unique_ptr<intake::SpoolStorage> storage, intake::OpenSpoolDirectory(options.spool_dir));
  absl::StatusOr<std::unique_ptr<RequestSpool>> spool =
      RequestSpool::Open(options.spool_bytes_max, std::move(storage), clock, metrics);
  if (!spool.ok()) return WithContext(spool.status(), options.spool_dir);
  if (!(*spool)->empty()) {
    LogInfo("the spool contains unsent samples of an earlier collector samples={} events={} bytes={}",
            (*spool)->earlier().total(), (*spool)->earlier().events(), (*spool)->bytes());
  }
  return spool;
}

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
                                      "Process events that were lost because they could not be sent, by "
                                      "reason; not_taken: only OTLP logs can contain them",
                                      {{"reason", std::string(LossReasonName(LossReason::kNotTaken))}})),
      predecessor_lost_(
          metrics.AddCounter("tributary_direct_predecessor_lost_samples_total",
                             "Samples that an earlier collector had captured and not sent when it was killed")),
      predecessor_lost_events_(
          metrics.AddCounter("tributary_direct_predecessor_lost_process_events_total",
                             "Process events that an earlier collector had captured and not sent when it was killed")),
      settle_timer_(std::make_unique<Timer>(loop, [this] { Settle(); })),
      deadline_timer_(std::make_unique<Timer>(loop, [this] { Cancel(); })) {}

absl::StatusOr<std::unique_ptr<DirectOutlet>> DirectOutlet::Open(
    Loop& loop, DirectOptions options, PinnedSession& pins, const intake::MetadataFeed& feed, const Clock& clock,
    Metrics& metrics, std::function<void(const ExecutableId&)> need_symbols) {
  ASSIGN_OR_RETURN(DirectSender sender, MakeDirectSender(options.receiver, options.variables, clock, metrics));
  absl::StatusOr<std::unique_ptr<RequestSpool>> spool = OpenSpool(options, clock, metrics);
  if (!spool.ok()) return WithContext(spool.status(), "--spool-dir");
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
  sending.sets_together = options.batches_together;
  sending.together_wait_ns = options.together_wait_ns;
  sending.send_timeout_ns = sender.timeout_ns;
  sending.builder = std::move(sender.builder);
  sending.identity.sender = options.session.host_name;
  sending.identity.session = options.session.session_id;
  sending.event_identity = sending.identity;
  sending.event_identity.session = EventSession(sending.identity.session);
  outlet->takes_events_ = sender.events != nullptr;
  DirectOutlet* borrowed = outlet.get();
  // The thread ends before the outlet does.
  BatchSender::Callbacks callbacks{
      .need_symbols =
          [borrowed](const ExecutableId& id) {
            borrowed->loop_.Post(borrowed->scope_.Wrap([borrowed, id] { borrowed->need_symbols_(id); }));
          },
      .progressed = [borrowed] { borrowed->loop_.Post(borrowed->scope_.Wrap([borrowed] { borrowed->Pin(); })); }};
  outlet->thread_ = std::make_unique<otlp::PassThread<BatchSender>>(std::make_unique<BatchSender>(
      std::move(sending), BatchSender::Receiver{.samples = std::move(sender.sender), .events = sender.events},
      *std::move(spool), std::move(callbacks), clock, metrics));
  return outlet;
}

// An earlier collector was killed, and its samples in memory with it. No receiver is told, so they are only counted
// here. Its samples in the spool are not lost: they are sent, or lost later. If this start failed, the next one must
// report them.
void DirectOutlet::ReportPredecessor() {
  std::vector<std::array<uint8_t, 16>> sessions;
  if (pins_.predecessor()) {
    for (const Predecessor::Share& share : pins_.predecessor()->shares) sessions.push_back(share.session_id);
  }
  const SampleCounts spooled = thread_->work().FindSpooled(sessions);
  if (!pins_.predecessor()) return;
  const Predecessor& from = *pins_.predecessor();
  const SampleCounts lost = from.unattributed() - from.accounting.TotalLost() - spooled;
  LogWarning(
      "an earlier collector ended without sending all samples captured={} lost={} lost_before={} lost_events={} "
      "spooled={}",
      from.accounting.captured.total(), lost.total(), from.accounting.TotalLost().total(), lost.events(),
      spooled.total());
  predecessor_lost_.Add(lost.total());
  predecessor_lost_events_.Add(lost.events());
  pins_.ForgetPredecessor({});
}

// A start that fails must send nothing of the spool: the next start could not tell that the samples are not lost.
void DirectOutlet::OnSampling() {
  ReportPredecessor();
  thread_->Start();
  if (metrics_thread_) metrics_thread_->Start();
}

absl::Status DirectOutlet::Take(Batch batch) {
  if (!takes_events_) {
    const uint64_t events = CountRecords(batch).events();
    events_not_taken_ += events;
    lost_events_.Add(events);
    batch.events.clear();
  }
  if (batch.samples.empty() && batch.events.empty()) return absl::OkStatus();
  if (settling_.size() >= kSettlingMax) SettleFirst();
  settling_samples_ += batch.samples.size();
  settling_.push_back({std::move(batch), clock_.Monotonic()});
  if (settling_.size() == 1) settle_timer_->StartOnce(kSettleNs / kNsPerMs);
  return absl::OkStatus();
}

void DirectOutlet::SettleFirst() {
  settling_samples_ -= settling_.front().batch.samples.size();
  thread_->work().Push(CopySamples(settling_.front().batch, [this](const Process& process, const Dictionary& texts) {
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
  thread_->work().AddSymbols(id, std::move(table));
  thread_->Wake();
}

void DirectOutlet::SendNoSymbols(const ExecutableId& id, const absl::Status& why) {
  LogDebug("no names for an executable build_id={} cause=\"{}\"", id.ToString(), Message(why));
  thread_->work().AddSymbols(id, why);
  thread_->Wake();
}

Outlet::Totals DirectOutlet::totals() const {
  const BatchSender::Totals of_sender = thread_->work().totals();
  Totals out{.lost = of_sender.lost,
             .sent_samples = of_sender.sent.total(),
             .sent_events = of_sender.sent.events(),
             .waiting_samples = of_sender.waiting.total() + settling_samples_};
  out.lost.LostFor(LossReason::kNotTaken).AddEvents(events_not_taken_);
  return out;
}

// Remembers what was sent or counted as lost, in case that this process is killed.
void DirectOutlet::Pin() {
  const BatchSender::Totals done = thread_->work().totals();
  SampleCounts counted = done.sent + done.lost.TotalLost();
  counted.AddEvents(events_not_taken_);
  pins_.Set(0, {session_id_, counted}, /*asked=*/true);
}

void DirectOutlet::Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) {
  settle_timer_->Stop();
  while (!settling_.empty()) SettleFirst();
  const int64_t cancel_ms = std::max<int64_t>(timeout_ms - kCancelMs, 0);
  deadline_timer_->StartOnce(static_cast<uint64_t>(cancel_ms));
  const MonotonicNs deadline{clock_.Monotonic().value + cancel_ms * kNsPerMs};
  thread_->Flush(deadline, [this, deadline, done = std::move(done)] {
    loop_.Post(scope_.Wrap([this, deadline, done] {
      pins_.Finish(/*undelivered=*/false);  // every sample and event was sent, is in the spool, or is counted as lost
      LogEarlier();
      FlushMetrics(deadline, [this, done] {
        deadline_timer_->Stop();
        done(thread_->work().totals().waiting.total());
      });
    }));
  });
}

void DirectOutlet::LogEarlier() const {
  const BatchSender::Totals totals = thread_->work().totals();
  const SampleCounts all = totals.earlier_sent + totals.earlier_lost + totals.earlier_waiting;
  if (all.empty()) return;
  LogInfo(
      "the spool had samples of earlier collectors samples={} sent={} lost={} left={} events={} events_sent={} "
      "events_lost={}",
      all.total(), totals.earlier_sent.total(), totals.earlier_lost.total(), totals.earlier_waiting.total(),
      all.events(), totals.earlier_sent.events(), totals.earlier_lost.events());
}

void DirectOutlet::Cancel() {
  thread_->work().Cancel();
  if (metrics_thread_) metrics_thread_->work().Cancel();
}

// The last values are those after the last samples. The timer also ends a request that hangs since before the stop.
void DirectOutlet::FlushMetrics(MonotonicNs deadline, std::function<void()> done) {
  if (!metrics_thread_) return done();
  const MonotonicNs now = clock_.Monotonic();
  deadline.value = std::min(deadline.value, now.value + kLastMetricsNs);
  deadline_timer_->StartOnce(static_cast<uint64_t>(std::max<int64_t>(deadline.value - now.value, 0) / kNsPerMs));
  metrics_thread_->work().EndBy(deadline);
  metrics_thread_->Flush(deadline, [this, done = std::move(done)] { loop_.Post(scope_.Wrap(done)); });
}

}  // namespace tributary
