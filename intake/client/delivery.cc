#include "intake/client/delivery.h"
#include "intake/codec/batch_encoder.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "base/log.h"
#include "base/status.h"
#include "intake/client/backlog.h"
#include "intake/client/recovery.h"
#include "intake/client/reducer_choice.h"

namespace tributary::intake {
namespace {

constexpr uint64_t kTickMs = 250;
constexpr size_t kAskersMax = 65'536;

// A process has its own session with each reducer. The last byte of the session id is the index of the reducer.
std::array<uint8_t, 16> SessionIdOf(std::array<uint8_t, 16> process, size_t reducer) {
  process[15] = static_cast<uint8_t>(reducer);
  return process;
}
size_t ReducerOf(const std::array<uint8_t, 16>& session_id) { return session_id[15]; }

}  // namespace

struct Delivery::Impl {
  // In order of preference.
  struct Reducer {
    size_t configured = 0;  // its index in the options
    bool asked = false;     // its session has asked for a batch
    std::unique_ptr<Client> client;
  };

  Impl(AlarmSource& alarms, Connector& connector, DeliveryOptions with, const Clock& by, Metrics& metrics,
       Callbacks with_callbacks);

  void Start();
  void CountLoss(LossReason reason, const SampleCounts& samples);
  absl::Status Take(Batch batch);
  absl::Status CutToFit(Batch& batch);
  std::optional<Outgoing> Next(Reducer& reducer, uint64_t sequence);
  SampleCounts Pending() const;
  Outgoing Closing(SampleCounts pending);
  void AddCloses(const Reducer& reducer, Outgoing* out);
  bool CanClose() const;
  void ReportDurable(const Reducer& reducer) const;
  void NoteFinished(const std::array<uint8_t, 16>& session_id, const SampleCounts& total);
  void OnAcked(const Reducer& reducer, const SendWindow::Entry& entry);

  void Tick();
  void Choose();
  void StartNext();
  void StopIdle();
  void GiveUpDoubtful();
  void StopWaiting(const char* why);
  void EndWaiting(const char* why);
  void KeepOrSend();
  bool Away() const;
  void Spill() { backlog.Spill(Away() ? Backlog::Reason::kAway : Backlog::Reason::kLimit); }
  void FinishFlush();
  void SpoolTheRest();

  SpoolClaim ClaimOf(const Client& client, uint64_t sequence) const;
  uint64_t InMemory() const;
  uint64_t Waiting() const;
  bool Idle() const;
  using Askers = absl::flat_hash_map<ExecutableId, size_t>;
  Client* ClientFor(const ExecutableId& id, Askers& of);
  std::function<void(const ExecutableId&)> DigestsFor(size_t reducer);
  std::function<void(std::vector<std::string>)> OptOutsFor(size_t reducer);

  const DeliveryOptions options;
  Spool* const spool;
  const Clock& clock;
  const Callbacks callbacks;
  std::vector<Reducer> reducers;
  size_t active = 0;
  Backlog backlog;
  Recovery recovery;

  Accounting taken;  // the process's totals up to the newest batch
  uint64_t taken_samples = 0;
  SampleCounts reported;  // samples and losses of this process that are in a session's batch
  std::optional<EndedCollector> earlier;
  OptOutLists opt_outs;
  Askers askers, digest_askers;  // index of the reducer that requested the symbols, or only their digest

  std::unique_ptr<Alarm> tick_alarm, flush_alarm, done_alarm;
  std::function<void(uint64_t)> flush_done;
  uint64_t undelivered = 0;
  bool settled = true;
  bool stopped = false;

  std::array<Counter*, kLossReasonCount> lost_samples, lost_events;
  Gauge& waiting_gauge;
  Counter& failovers;
};

Delivery::Impl::Impl(AlarmSource& alarms, Connector& connector, DeliveryOptions with, const Clock& by, Metrics& metrics,
                     Callbacks with_callbacks)
    : options(std::move(with)),
      spool(options.spool),
      clock(by),
      callbacks(std::move(with_callbacks)),
      backlog(options.memory_bytes_max, spool, options.client.session.session_id, by,
              [this](LossReason reason, const SampleCounts& samples) { CountLoss(reason, samples); }),
      recovery(alarms, connector, options.client, by, metrics,
               {.settled = [this](SegmentId segment) { backlog.Settled(segment); },
                .given_up =
                    [this](const SampleCounts& samples, const Accounting& accounting) {
                      backlog.CountForeign(samples, accounting);
                      backlog.AddDoubt(samples, accounting, /*foreign=*/true);
                    },
                .damaged = [this](const SampleCounts& samples) { CountLoss(LossReason::kSpoolDamaged, samples); },
                .not_taken = [this](const SampleCounts& events) { CountLoss(LossReason::kNotTaken, events); },
                .finished = [this](const std::array<uint8_t, 16>& id,
                                   const SampleCounts& total) { NoteFinished(id, total); }}),
      earlier(options.earlier),
      opt_outs(options.reducers.size()),
      tick_alarm(alarms.NewAlarm([this] { Tick(); })),
      flush_alarm(alarms.NewAlarm([this] {
        undelivered = Waiting();
        settled = false;
        SpoolTheRest();
        FinishFlush();
      })),
      // This is the last step: `done` may destroy this object.
      done_alarm(alarms.NewAlarm([this] {
        auto done = std::exchange(flush_done, nullptr);
        if (done) done(undelivered);
      })),
      waiting_gauge(metrics.AddGauge("tributary_intake_client_unacked_samples",
                                     "Samples that no reducer has acknowledged yet: they are in memory, in the spool, "
                                     "or sent to a reducer that has not answered yet")),
      failovers(metrics.AddCounter("tributary_intake_client_failovers_total",
                                   "Changes from one reducer to another, including returns to the preferred reducer")) {
  TRIBUTARY_CHECK(!options.reducers.empty());
  for (uint8_t i = 0; i < kLossReasonCount; ++i) {
    lost_samples[i] =
        &metrics.AddCounter("tributary_intake_client_lost_samples_total",
                            "Samples that were lost because they could not be delivered to a reducer, by reason",
                            {{"reason", std::string(LossReasonName(static_cast<LossReason>(i)))}});
    lost_events[i] =
        &metrics.AddCounter("tributary_intake_client_lost_process_events_total",
                            "Process events that were lost because they could not be delivered to a reducer, by reason",
                            {{"reason", std::string(LossReasonName(static_cast<LossReason>(i)))}});
  }
  const std::vector<size_t> order = PreferenceOf(options.client.session.node_id, options.reducers);
  reducers.resize(order.size());
  for (size_t i = 0; i < order.size(); ++i) {
    Reducer& reducer = reducers[i];
    reducer.configured = order[i];
    ClientOptions client = options.client;
    client.host = options.reducers[order[i]].host;
    client.port = options.reducers[order[i]].port;
    client.session.session_id = SessionIdOf(client.session.session_id, order[i]);
    reducer.client = std::make_unique<Client>(
        alarms, connector, std::move(client), clock, metrics,
        Client::Callbacks{
            .next = [this, &reducer](uint64_t sequence) { return Next(reducer, sequence); },
            .acked = [this, &reducer](const SendWindow::Entry& entry) { OnAcked(reducer, entry); },
            .rejected = [this](const SampleCounts& samples) { CountLoss(LossReason::kRejected, samples); },
            .not_taken = [this](const SampleCounts& events) { CountLoss(LossReason::kNotTaken, events); },
            .need_symbols =
                [this, i](const ExecutableId& id) {
                  if (askers.size() < kAskersMax) askers.insert_or_assign(id, i);
                  if (callbacks.need_symbols) callbacks.need_symbols(id);
                },
            .need_digest = DigestsFor(i),
            .opt_outs = OptOutsFor(i),
            .changed = [this] { Choose(); }});
  }
}

void Delivery::Impl::CountLoss(LossReason reason, const SampleCounts& samples) {
  lost_samples[static_cast<size_t>(reason)]->Add(samples.total());
  lost_events[static_cast<size_t>(reason)]->Add(samples.events());
  if (callbacks.lost) callbacks.lost(reason, samples);
}

void Delivery::Impl::Start() {
  while (spool != nullptr) {
    std::optional<SpooledBatch> batch = spool->Next();
    if (!batch) break;
    if (!batch->claim) {
      backlog.PutBack(*std::move(batch));
      break;
    }
    backlog.TakenElsewhere(*batch);
    recovery.Add(*std::move(batch));
  }
  recovery.Start();
  tick_alarm->StartEvery(kTickMs);
  ReportDurable(reducers.front());  // if a kill comes before the first answer, its losses need a session
  reducers.front().client->Start();
}

absl::Status Delivery::Impl::Take(Batch batch) {
  taken_samples += batch.samples.size();
  Accounting delta = batch.accounting;
  delta -= taken;
  delta.captured = {};
  taken = std::exchange(batch.accounting, delta);
  const absl::Status status = CutToFit(batch);
  backlog.Add(std::move(batch));
  if (backlog.nearly_full()) StopWaiting("the memory or the spool is nearly full");
  Spill();
  reducers[active].client->Wake();
  waiting_gauge.Set(static_cast<int64_t>(Waiting()));
  return status;
}

// Drops records that do not fit into a message. If there are too many records of both kinds, drops the events.
absl::Status Delivery::Impl::CutToFit(Batch& batch) {
  absl::Status status;
  if (const size_t samples = batch.samples.size(); samples > BatchEncoder::kSamplesPerBatchMax) {
    status = Error(absl::StatusCode::kInvalidArgument, fmt::format("a batch has {} samples, but at most {} are allowed",
                                                                   samples, BatchEncoder::kSamplesPerBatchMax));
    backlog.AddLoss(LossReason::kRejected, CountSamples(batch.samples), {});
    batch.samples.clear();
  }
  if (!BatchEncoder::Fits(batch)) {
    status = Error(absl::StatusCode::kInvalidArgument,
                   fmt::format("a batch has {} samples and {} process events, which do not fit into one message",
                               batch.samples.size(), batch.events.size()));
    backlog.AddLoss(LossReason::kRejected, CountRecords({}, batch.events), {});
    batch.events.clear();
  }
  return status;
}

// Returns true if no reducer takes batches: none answers, or batches wait for the upgrade of the reducer that answers.
// Then the batches must be in the spool, in case this process is killed.
bool Delivery::Impl::Away() const {
  const auto takes = [](const Reducer& r) { return r.client->ready() && !r.client->waits_for_upgrade(); };
  if (std::any_of(reducers.begin(), reducers.end(), takes)) return false;
  if (reducers[active].client->waits_for_upgrade()) return true;
  return clock.Monotonic().value - reducers.front().client->silent_since().value >= options.failover_ms * kNsPerMs;
}

SpoolClaim Delivery::Impl::ClaimOf(const Client& client, uint64_t sequence) const {
  return {.host = client.options().host,
          .port = client.options().port,
          .session_id = client.options().session.session_id,
          .first_sequence = sequence,
          .base = client.window().totals()};
}

// A session that is not active sends at most a closing batch: the report that none of its samples are pending any more.
std::optional<Outgoing> Delivery::Impl::Next(Reducer& reducer, uint64_t sequence) {
  if (stopped) return std::nullopt;
  if (&reducer != &reducers[active]) {
    if (reducer.client->window().reported_pending().empty()) return std::nullopt;
    return Closing({});
  }
  // The session must be reported before a batch is claimed for it.
  if (!std::exchange(reducer.asked, true)) ReportDurable(reducer);
  // While a batch waits, a closing batch would report it as captured here, but another session may send it later.
  if (const Batch* oldest = backlog.Oldest(); oldest != nullptr && reducer.client->Holds(*oldest)) return std::nullopt;
  std::optional<Outgoing> out = backlog.Next(ClaimOf(*reducer.client, sequence));
  if (!out) {
    const bool more_to_report =
        backlog.has_unreported_losses() || reducer.client->window().reported_pending() != Pending();
    const auto& sent = reducer.client->window().entries();
    const bool closing_sent =
        std::any_of(sent.begin(), sent.end(), [](const auto& e) { return !e.batch.closes.empty(); });
    if (!flush_done || !(more_to_report || (CanClose() && !closing_sent))) return std::nullopt;
    Outgoing closing = Closing(Pending());
    AddCloses(reducer, &closing);
    return closing;
  }
  if (!out->foreign) reported += CountRecords(out->batch) + out->delta.TotalLost();
  out->pending = Pending();
  AddCloses(reducer, &*out);
  return out;
}

SampleCounts Delivery::Impl::Pending() const { return taken.captured - (reported - backlog.foreign_lost()); }

// Returns a batch without samples that reports the accounting.
Outgoing Delivery::Impl::Closing(SampleCounts pending) {
  Outgoing out;
  out.pending = std::move(pending);
  out.delta = backlog.TakeLosses();
  reported += out.delta.TotalLost();
  out.batch.clock = clock.Pair();
  return out;
}

// Closes the account of the earlier collector once every batch that it left in the spool has a session. Samples that
// are then neither stored nor reported lost were lost with the collector. Its most recently used session accounts for
// them, less the samples of its other sessions. The reducer of another session knows how many samples it stored, even
// if more than were acknowledged. For a session with a different reducer, the acknowledged samples are subtracted here.
// Each batch carries these records until a batch that carries them is durable.
void Delivery::Impl::AddCloses(const Reducer& reducer, Outgoing* out) {
  if (!CanClose()) return;
  std::vector<ClosedSession>& closes = out->batch.closes;
  closes.push_back({.session_id = earlier->sessions.front().session_id, .reason = earlier->reason});
  SampleCounts share = earlier->captured - backlog.foreign_attributed();
  for (size_t i = 0; i < earlier->sessions.size(); ++i) {
    const EndedCollector::Session& session = earlier->sessions[i];
    const bool known_here = ReducerOf(session.session_id) == reducer.configured;
    if (!known_here) {
      share -= session.attributed;
    } else if (i > 0 && closes.size() < kClosedSessionsMax) {
      closes.push_back({session.session_id, session.attributed, earlier->reason});
    }
  }
  closes.front().captured = share;
}

bool Delivery::Impl::CanClose() const {
  return earlier && !earlier->sessions.empty() && recovery.done() && !backlog.foreign_left();
}

void Delivery::Impl::OnAcked(const Reducer& reducer, const SendWindow::Entry& entry) {
  if (entry.segment != 0) backlog.Settled(entry.segment);
  if (!entry.batch.closes.empty() && earlier) {
    earlier.reset();
    if (callbacks.earlier_reported) callbacks.earlier_reported(backlog.foreign_attributed());
  }
  ReportDurable(reducer);
  waiting_gauge.Set(static_cast<int64_t>(Waiting()));
  if (flush_done && Idle()) FinishFlush();
}

void Delivery::Impl::ReportDurable(const Reducer& reducer) const {
  const Client& client = *reducer.client;
  if (!callbacks.durable) return;
  callbacks.durable(reducer.configured, {client.options().session.session_id, client.window().durable().captured},
                    reducer.asked);
}

// More batches of the earlier collector's session are durable than the collector had seen.
void Delivery::Impl::NoteFinished(const std::array<uint8_t, 16>& session_id, const SampleCounts& total) {
  if (!earlier) return;
  for (EndedCollector::Session& session : earlier->sessions) {
    if (session.session_id == session_id) session.attributed = Max(session.attributed, total);
  }
}

void Delivery::Impl::Tick() {
  if (stopped) return;
  if (spool != nullptr) spool->Tick();
  Spill();
  recovery.Tick(reducers.size() > 1 ? options.in_doubt_timeout_ms : 0);
  GiveUpDoubtful();
  StartNext();
  Choose();
  StopIdle();
  KeepOrSend();
  if (flush_done && Idle()) FinishFlush();
}

// Uses the most preferred reducer that answers.
void Delivery::Impl::Choose() {
  if (stopped) return;
  const auto it = std::find_if(reducers.begin(), reducers.end(), [](const Reducer& r) { return r.client->ready(); });
  if (it == reducers.end()) return;
  const size_t best = static_cast<size_t>(it - reducers.begin());
  if (best != active) {
    failovers.Add();
    const auto name = [this](size_t i) {
      const ClientOptions& to = reducers[i].client->options();
      return fmt::format("{}:{}", to.host, to.port);
    };
    LogInfo("intake switches to reducer={} from={} cause={}", name(best), name(active),
            best < active ? "\"a reducer earlier in --intake-host is connected\""
                          : "\"no reducer earlier in --intake-host is connected\"");
    const size_t before = std::exchange(active, best);
    ReportDurable(reducers[active]);
    reducers[before].client->Wake();  // reports that no more samples are pending
  }
  reducers[active].client->Wake();
}

// Starts the next reducer when every reducer before it has been silent for `failover_ms`.
void Delivery::Impl::StartNext() {
  const MonotonicNs now = clock.Monotonic();
  for (Reducer& reducer : reducers) {
    Client& client = *reducer.client;
    if (!client.started()) client.Start();
    if (client.ready()) return;
    if (now.value - client.silent_since().value < options.failover_ms * kNsPerMs) return;
  }
}

void Delivery::Impl::StopIdle() {
  for (size_t i = active + 1; i < reducers.size(); ++i) {
    Client& client = *reducers[i].client;
    if (client.ready() && client.window().empty() && client.window().reported_pending().empty()) client.Stop();
  }
}

// Gives up batches only if another reducer has taken over. A single reducer is waited for, however long it takes.
void Delivery::Impl::GiveUpDoubtful() {
  const MonotonicNs now = clock.Monotonic();
  for (size_t i = 0; i < reducers.size(); ++i) {
    Client& client = *reducers[i].client;
    if (i == active || client.ready() || client.window().empty()) continue;
    if (now.value - client.silent_since().value < options.in_doubt_timeout_ms * kNsPerMs) continue;
    SampleCounts given_up;
    for (const SendWindow::Entry& entry : client.GiveUp()) {
      given_up += entry.samples;
      if (!entry.foreign) reported -= entry.delta.captured;
      backlog.AddDoubt(entry.samples, entry.delta, entry.foreign);
      if (entry.segment != 0) backlog.Settled(entry.segment);
    }
    LogWarning(
        "samples lost reason=in_doubt samples={} process_events={} reducer={}:{}: they were sent, but the reducer did "
        "not acknowledge them",
        given_up.total(), given_up.events(), client.options().host, client.options().port);
  }
}

void Delivery::Impl::StopWaiting(const char* why) {
  for (Reducer& reducer : reducers) reducer.client->StopWaiting(why);
  recovery.StopWaiting(why);
}

void Delivery::Impl::EndWaiting(const char* why) {
  for (Reducer& reducer : reducers) reducer.client->EndWaiting(why);
}

// At a stop, batches that wait for an upgrade go to the spool: the upgrade is not expected within the time of a stop.
// If the spool does not take them, their samples are sent without their process events. Otherwise all would be lost.
void Delivery::Impl::KeepOrSend() {
  if (!flush_done || stopped || !reducers[active].client->waits_for_upgrade()) return;
  backlog.Spill(Backlog::Reason::kAway);
  if (backlog.memory_empty()) {
    flush_alarm->StartOnce(0);
  } else {
    EndWaiting("the collector stops, and the spool cannot be written");
  }
}

uint64_t Delivery::Impl::InMemory() const {
  uint64_t samples = backlog.memory_samples() + recovery.samples();
  for (const Reducer& reducer : reducers) samples += reducer.client->window().samples();
  return samples;
}

uint64_t Delivery::Impl::Waiting() const { return InMemory() + (spool != nullptr ? spool->samples() : 0); }

bool Delivery::Impl::Idle() const {
  // A session that is not active must report that no samples are pending any more. Otherwise its reducer would count
  // these samples as captured for ever, in addition to the reducer that got them.
  const auto all_reported = [this](const Reducer& r) {
    return r.client->window().empty() && (&r == &reducers[active] || r.client->window().reported_pending().empty());
  };
  return backlog.empty() && !backlog.has_unreported_losses() && recovery.done() && !CanClose() &&
         std::all_of(reducers.begin(), reducers.end(), all_reported);
}

void Delivery::Impl::FinishFlush() {
  flush_alarm->Stop();
  done_alarm->StartOnce(0);
}

// At the end, batches that were sent and not answered go to the spool under their own sequence numbers. Batches that
// were not sent go there without a number.
void Delivery::Impl::SpoolTheRest() {
  stopped = true;
  if (spool == nullptr) return;
  for (Reducer& reducer : reducers) {
    Client& client = *reducer.client;
    client.Stop();
    for (const SendWindow::Entry& entry : client.GiveUp()) {
      if (entry.segment != 0 || entry.samples.empty()) continue;  // the spool has the batch already, with its claim
      SpoolClaim claim = ClaimOf(client, entry.batch.sequence);
      claim.base = entry.before;
      Batch batch = entry.batch;
      batch.accounting = entry.delta;
      if (absl::Status kept = spool->Append(batch, claim); !kept.ok()) {
        LogWarning("cannot write samples to the spool samples={} cause=\"{}\"", entry.samples.total(), Message(kept));
      }
    }
  }
  backlog.Spill(Backlog::Reason::kStop);
}

Client* Delivery::Impl::ClientFor(const ExecutableId& id, Askers& of) {
  auto it = of.find(id);
  if (it == of.end()) return nullptr;
  Client* client = reducers[it->second].client.get();
  of.erase(it);
  return client;
}

std::function<void(const ExecutableId&)> Delivery::Impl::DigestsFor(size_t reducer) {
  if (!callbacks.need_digest) return {};
  return [this, reducer](const ExecutableId& id) {
    if (digest_askers.size() < kAskersMax) digest_askers.insert_or_assign(id, reducer);
    callbacks.need_digest(id);
  };
}

std::function<void(std::vector<std::string>)> Delivery::Impl::OptOutsFor(size_t reducer) {
  if (!callbacks.opt_outs) return {};
  return [this, reducer](std::vector<std::string> containers) {
    callbacks.opt_outs(
        opt_outs.Set(reducer, std::move(containers), [this](size_t other) { return reducers[other].client->ready(); }));
  };
}

Delivery::Delivery(AlarmSource& alarms, Connector& connector, DeliveryOptions options, const Clock& clock,
                   Metrics& metrics, Callbacks callbacks)
    : impl_(std::make_unique<Impl>(alarms, connector, std::move(options), clock, metrics, std::move(callbacks))) {}
Delivery::~Delivery() = default;

void Delivery::Start() { impl_->Start(); }
absl::Status Delivery::Take(Batch batch) { return impl_->Take(std::move(batch)); }

void Delivery::OnSpoolDropped(LossReason reason, const SampleCounts& samples, const Accounting& accounting,
                              bool earlier) {
  impl_->backlog.OnDropped(reason, samples, accounting, earlier);
}

void Delivery::SendSymbols(const ExecutableId& id, PackedTable table) {
  if (Client* client = impl_->ClientFor(id, impl_->askers)) client->SendSymbols(id, std::move(table));
}

void Delivery::SendNoSymbols(const ExecutableId& id, std::string why) {
  if (Client* client = impl_->ClientFor(id, impl_->askers)) client->SendNoSymbols(id, std::move(why));
}

void Delivery::SendDigest(const ExecutableId& id, const absl::StatusOr<SymbolDigest>& digest) {
  if (Client* client = impl_->ClientFor(id, impl_->digest_askers)) client->SendDigest(id, digest);
}

void Delivery::Flush(int64_t timeout_ms, std::function<void(uint64_t undelivered_samples)> done) {
  impl_->flush_done = std::move(done);
  impl_->flush_alarm->StartOnce(static_cast<uint64_t>(std::max<int64_t>(timeout_ms, 0)));
  if (impl_->spool == nullptr) impl_->EndWaiting("the collector stops, and has no spool");
  impl_->KeepOrSend();
  impl_->reducers[impl_->active].client->Wake();
  if (impl_->Idle()) impl_->FinishFlush();
}

bool Delivery::connected() const {
  return std::any_of(impl_->reducers.begin(), impl_->reducers.end(), [](const auto& r) { return r.client->ready(); });
}
std::string Delivery::refusal() const {
  if (connected()) return "";
  for (const auto& [configured, asked, client] : impl_->reducers) {
    if (client->refusal().empty()) continue;
    return fmt::format("{}:{}: {}", client->options().host, client->options().port, client->refusal());
  }
  return "";
}
bool Delivery::settled() const { return impl_->settled; }
uint64_t Delivery::waiting_samples() const { return impl_->Waiting(); }
void Delivery::SetSampleRate(uint32_t hz) {
  for (const auto& reducer : impl_->reducers) reducer.client->SetSampleRate(hz);
}

uint64_t Delivery::bytes_sent() const {
  uint64_t bytes = 0;
  for (const auto& reducer : impl_->reducers) bytes += reducer.client->bytes_sent();
  return bytes;
}

}  // namespace tributary::intake
