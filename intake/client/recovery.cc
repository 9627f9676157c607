#include "intake/client/recovery.h"

#include <algorithm>
#include <utility>

#include "base/log.h"

namespace tributary::intake {
namespace {

SampleCounts ReportedUpTo(const SpooledBatch& batch) {
  return batch.claim->base.captured + CountRecords(batch.batch) + batch.batch.accounting.TotalLost();
}

}  // namespace

Recovery::Recovery(AlarmSource& alarms, Connector& connector, ClientOptions options, const Clock& clock,
                   Metrics& metrics, Callbacks callbacks)
    : alarms_(alarms),
      connector_(connector),
      options_(std::move(options)),
      clock_(clock),
      metrics_(metrics),
      callbacks_(std::move(callbacks)) {}

void Recovery::Add(SpooledBatch batch) {
  const auto same = [&](const auto& session) {
    return session->batches.front().claim->session_id == batch.claim->session_id;
  };
  auto it = std::find_if(sessions_.begin(), sessions_.end(), same);
  if (it == sessions_.end()) it = sessions_.insert(it, std::make_unique<Session>());
  // A batch that a stop put into the spool may be older than batches claimed before it. A damaged batch that could not
  // be cut off may have the number of another batch: then the other batch is sent.
  std::deque<SpooledBatch>& batches = (*it)->batches;
  const auto later = [](const SpooledBatch& a, const SpooledBatch& b) {
    return std::pair(a.claim->first_sequence, !a.damaged_samples.empty()) <
           std::pair(b.claim->first_sequence, !b.damaged_samples.empty());
  };
  batches.insert(std::upper_bound(batches.begin(), batches.end(), batch, later), std::move(batch));
}

void Recovery::Start() {
  for (const auto& owned : sessions_) {
    Session& session = *owned;
    const SpooledBatch& first = session.batches.front();
    ClientOptions options = options_;
    options.host = first.claim->host;
    options.port = first.claim->port;
    options.session = first.session;
    options.session.session_id = first.claim->session_id;
    session.client = std::make_unique<Client>(
        alarms_, connector_, std::move(options), clock_, metrics_,
        Client::Callbacks{.next = [this, &session](uint64_t sequence) { return Next(session, sequence); },
                          .acked =
                              [this](const SendWindow::Entry& entry) {
                                if (entry.segment != 0) callbacks_.settled(entry.segment);
                              },
                          .rejected = {},
                          .not_taken = callbacks_.not_taken,
                          .need_symbols = {},
                          .need_digest = {},
                          .changed = {}});
    session.client->Continue(first.claim->first_sequence - 1, first.claim->base);
    LogInfo("sending the spooled batches of an earlier session again reducer={}:{} batches={}", first.claim->host,
            first.claim->port, session.batches.size());
    session.client->Start();
  }
}

std::optional<Outgoing> Recovery::Next(Session& session, uint64_t sequence) {
  while (!session.batches.empty() && session.batches.front().claim->first_sequence < sequence) {
    session.reported = ReportedUpTo(session.batches.front());
    callbacks_.settled(session.batches.front().segment);  // the reducer has this number
    session.batches.pop_front();
  }
  if (session.batches.empty()) return std::nullopt;
  SpooledBatch& front = session.batches.front();
  Outgoing out;
  out.base = front.claim->base;
  *out.base += session.damaged;
  if (front.claim->first_sequence > sequence) {
    // A batch in the killed process's memory had this number. It has not arrived and never will.
    out.batch.clock = clock_.Pair();
    return out;
  }
  if (session.client->Holds(front.batch)) return std::nullopt;
  session.reported = ReportedUpTo(front);
  out.delta = front.batch.accounting;
  out.segment = front.segment;
  out.batch = std::move(front.batch);
  if (out.batch.dictionary == nullptr) {  // damaged
    out.batch.clock = clock_.Pair();
    session.damaged.LostFor(LossReason::kSpoolDamaged) += front.damaged_samples;
    callbacks_.damaged(front.damaged_samples);
  }
  session.batches.pop_front();
  return out;
}

bool Recovery::Finished(const Session& session) const {
  return session.batches.empty() && session.client->window().empty() && session.client->ready();
}

void Recovery::GiveUp(Session& session) {
  Accounting lost;
  SampleCounts samples;
  for (const SendWindow::Entry& entry : session.client->GiveUp()) {
    samples += entry.samples;
    lost += entry.delta;
    if (entry.segment != 0) callbacks_.settled(entry.segment);
  }
  for (const SpooledBatch& spooled : session.batches) {
    samples += CountRecords(spooled.batch);
    lost += spooled.batch.accounting;
    callbacks_.settled(spooled.segment);
  }
  session.batches.clear();
  callbacks_.given_up(samples, lost);
}

void Recovery::Tick(int64_t silent_ms_max) {
  const MonotonicNs now = clock_.Monotonic();
  std::erase_if(sessions_, [&](const std::unique_ptr<Session>& session) {
    if (Finished(*session)) {
      session->client->Stop();
      callbacks_.finished(session->client->options().session.session_id, session->reported);
      return true;
    }
    const bool silent = !session->client->ready() && silent_ms_max > 0 &&
                        now.value - session->client->silent_since().value > silent_ms_max * kNsPerMs;
    if (silent) GiveUp(*session);
    return silent;
  });
}

void Recovery::StopWaiting(const char* why) {
  for (const auto& session : sessions_) session->client->StopWaiting(why);
}

uint64_t Recovery::samples() const {
  uint64_t samples = 0;
  for (const auto& session : sessions_) {
    samples += session->client->window().samples();
    for (const SpooledBatch& spooled : session->batches) samples += spooled.batch.samples.size();
  }
  return samples;
}

}  // namespace tributary::intake
