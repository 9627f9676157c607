#include "reducer/sqlite/shard_writer.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/status.h"
#include "reducer/sqlite/schema.h"
#include "reducer/store/opt_out_filter.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

constexpr uint32_t kUnknownClosedMax = 64;  // unknown sessions that one session may report as ended; each adds a row

}  // namespace

SqliteShardWriter::SqliteShardWriter(ShardWriterOptions options, const Clock& clock, Metrics& metrics)
    : options_(std::move(options)), clock_(clock), metrics_(metrics), counters_(metrics, options_.refusals) {}

absl::StatusOr<std::unique_ptr<SqliteShardWriter>> SqliteShardWriter::Open(ShardWriterOptions options,
                                                                           const Clock& clock, Metrics& metrics) {
  std::unique_ptr<SqliteShardWriter> writer(new SqliteShardWriter(std::move(options), clock, metrics));
  RETURN_IF_ERROR(writer->Prepare());
  return writer;
}

absl::Status SqliteShardWriter::Prepare() {
  ASSIGN_OR_RETURN(Database database, OpenShardForWriting(options_.path));
  database_ = std::make_unique<Database>(std::move(database));
  ASSIGN_OR_RETURN(ledger_, NodeLedger::Prepare(*database_, options_.node_definition_bytes_per_day));
  ASSIGN_OR_RETURN(DefinitionTables definitions,
                   DefinitionTables::Prepare(*database_, *ledger_, options_.number_age_max));
  definitions_ = std::make_unique<DefinitionTables>(std::move(definitions));
  ASSIGN_OR_RETURN(SampleTypeTable types, SampleTypeTable::Prepare(*database_));
  types_ = std::make_unique<SampleTypeTable>(std::move(types));
  ASSIGN_OR_RETURN(EventWriter events, EventWriter::Prepare(*database_, *ledger_));
  events_ = std::make_unique<EventWriter>(std::move(events));
  ASSIGN_OR_RETURN(LossTable losses, LossTable::Prepare(*database_));
  losses_ = std::make_unique<LossTable>(std::move(losses));
  ASSIGN_OR_RETURN(tries_, DayTries::Prepare(*database_, *ledger_, options_.trie, clock_, metrics_));
  ASSIGN_OR_RETURN(SessionTable sessions, SessionTable::Prepare(*database_, *ledger_, options_.sessions, metrics_));
  sessions_ = std::make_unique<SessionTable>(std::move(sessions));
  ASSIGN_OR_RETURN(maintenance_, Maintenance::Prepare(*database_, *ledger_, options_.maintenance));
  ASSIGN_OR_RETURN(samples_, SampleWriter::Prepare({*database_, *definitions_, *types_, *tries_, *ledger_,
                                                    *maintenance_, clock_, tally_, options_.opt_outs}));
  ASSIGN_OR_RETURN(set_aside_, SetAside::Prepare(
                                   *database_, *ledger_, options_.trie.nodes_max,
                                   [this](std::string_view text, Day day) { return definitions_->Text(text, day); },
                                   options_.maintenance.damage, clock_, metrics_));
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ShardWriter::Outcome>> SqliteShardWriter::Commit(std::span<const RowBatch> group) {
  if (group.empty()) return std::vector<Outcome>();
  const MonotonicNs start = clock_.Monotonic();
  absl::StatusOr<std::vector<Outcome>> outcomes = CommitOrUndo(group);
  if (const std::optional<Day> damaged = tries_->TakeDamaged(); !outcomes.ok() && damaged) {
    const absl::StatusOr<bool> repaired = set_aside_->RepairTrie(*damaged);
    if (repaired.value_or(false)) {
      ForgetTrie(*damaged);
      outcomes = CommitOrUndo(group);
    }
  }
  counters_.AddTime(clock_.Monotonic().value - start.value);
  return outcomes;
}

absl::StatusOr<std::vector<ShardWriter::Outcome>> SqliteShardWriter::CommitOrUndo(std::span<const RowBatch> group) {
  tally_ = {};
  absl::StatusOr<std::vector<Outcome>> outcomes = TryCommit(group);
  if (outcomes.ok()) {
    sessions_->Settle();
    ledger_->MarkCommitted();
    tries_->MarkCommitted();
    samples_->MarkCommitted();
    counters_.Add(tally_);
  } else {
    sessions_->Undo();
    ledger_->Rollback();
    definitions_->Rollback();
    types_->Forget();
    events_->Forget();
    losses_->Forget();
    samples_->Rollback();
    tries_->Rollback();
    // Only sessions of this group can have ids of rows and nodes that were rolled back. Undo has removed these ids.
  }
  return outcomes;
}

absl::StatusOr<std::vector<ShardWriter::Outcome>> SqliteShardWriter::TryCommit(std::span<const RowBatch> group) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  ledger_->SetToday(DayOf(clock_.Unix()));
  RETURN_IF_ERROR(FreeNumbers());
  std::vector<Outcome> outcomes;
  outcomes.reserve(group.size());
  for (const RowBatch& pending : group) {
    ASSIGN_OR_RETURN(Outcome outcome, Apply(pending));
    outcomes.push_back(outcome);
  }
  RETURN_IF_ERROR(tries_->Write());
  RETURN_IF_ERROR(definitions_->WriteProcesses());
  RETURN_IF_ERROR(events_->Write());
  RETURN_IF_ERROR(WriteLosses());
  RETURN_IF_ERROR(sessions_->WriteTouched(clock_.Unix().value));
  RETURN_IF_ERROR(ledger_->Write());
  RETURN_IF_ERROR(transaction.Commit());
  return outcomes;
}

absl::Status SqliteShardWriter::WriteLosses() {
  const UnixNs now = clock_.Unix();
  return sessions_->VisitTouched([&](const Session& session, const SessionTotals& before) {
    absl::Status status;
    VisitLossChanges(before, session.totals, [&](const SampleTypeInfo& type, LossReason reason, int64_t samples) {
      if (status.ok()) status = losses_->Add(session.machine, type, reason, samples, now);
    });
    return status;
  });
}

// Makes sessions forget the numbers of processes and threads that will be given to others, and all they know of the
// days whose numbers are free now.
absl::Status SqliteShardWriter::FreeNumbers() {
  ProcessNumbers& numbers = definitions_->numbers();
  if (numbers.TakeSweep()) {
    sessions_->ForgetOldNumbers(numbers);
    definitions_->ForgetNumbers();
  }
  ASSIGN_OR_RETURN(const std::optional<Day> kept_from, numbers.Release(DayOf(clock_.Unix())));
  if (!kept_from) return absl::OkStatus();
  sessions_->ForgetDays(*kept_from, Day{INT32_MIN});
  definitions_->ForgetNumbers();
  return absl::OkStatus();
}

absl::StatusOr<ShardWriter::Outcome> SqliteShardWriter::Apply(const RowBatch& batch) {
  ASSIGN_OR_RETURN(Session * session, sessions_->Touch(SessionKey(batch.source)));
  const uint64_t expected_max = std::max(session->totals.durable_sequence + 1, batch.oldest_held);
  if (batch.sequence > expected_max || !TakeDefinitions(*session, batch)) {
    ++tally_.need_dictionary;
    return Outcome{session->totals.durable_sequence, true};
  }
  // If another session has reported this session as ended before its own first batch, it has a machine, but no boot id.
  if (session->machine == 0 || (session->boot_id.empty() && !batch.node->boot_id.empty())) {
    ASSIGN_OR_RETURN(session->machine, definitions_->Machine(*batch.node));
    session->boot_id = batch.node->boot_id;
  }
  definitions_->SetMachine(session->machine);
  ledger_->AddReceived(session->machine, batch.wire_bytes);
  if (session->node_id.empty()) session->node_id = batch.node->node_id;
  session->totals.wire_bytes += batch.wire_bytes;
  if (batch.sequence != 0 && batch.sequence <= session->totals.durable_sequence) {
    ++tally_.duplicates;
  } else {
    RETURN_IF_ERROR(Store(*session, batch));
  }
  if (batch.generation == 0) sessions_->DropDictionary(*session);
  return Outcome{session->totals.durable_sequence, false};
}

// Stores a new batch. A batch without a number may contain only definitions.
absl::Status SqliteShardWriter::Store(Session& session, const RowBatch& batch) {
  SessionTotals& totals = session.totals;
  const bool has_boot = batch.sequence != 0 && batch.source.kind == SourceKind::kSession;
  if (session.boot_ns == 0 && has_boot) RETURN_IF_ERROR(NoteBoot(session, batch.clock));
  if (batch.sequence != 0 || !batch.samples.empty() || !batch.events.empty()) {
    const uint64_t too_old = tally_.too_old(), clamped = tally_.clamped_times;
    RETURN_IF_ERROR(samples_->Write(session, batch, Rules()));
    RETURN_IF_ERROR(StoreEvents(session, batch));
    CountReduced(batch);
    tally_.Refuse(batch.node->node_id, "too_old", tally_.too_old() - too_old);
    tally_.Refuse(batch.node->node_id, "clamped_times", tally_.clamped_times - clamped);
    ++tally_.batches;
  }
  totals.Account(batch);
  return Close(session, batch);
}

// The first batch of a session says when its node was booted. Closes the node's sessions from earlier boots, because
// they have ended.
absl::Status SqliteShardWriter::NoteBoot(Session& session, const ClockPair& clock) {
  session.boot_ns = SampleTimes(clock, clock_.Unix().value).BootNs();
  return session.boot_ns == 0 ? absl::OkStatus() : sessions_->CloseEarlierBoots(session);
}

// The first session in `closes` accounts for all captured samples that no other session in `closes` accounts for. A
// session that is known here accounts for its stored and its lost samples, even for those that its node has not seen
// acknowledged.
absl::Status SqliteShardWriter::Close(Session& sender, const RowBatch& batch) {
  const std::vector<ClosedSession>& closes = batch.closes;
  NamedSampleCounts others;
  for (size_t i = closes.size(); i-- > 0;) {
    const ClosedSession& closed = closes[i];
    const NamedSampleCounts captured = Named(batch, closed.captured);
    ASSIGN_OR_RETURN(Session * session, FindClosed(sender, closed, /*may_be_new=*/i == 0));
    if (session == nullptr) {
      others += captured;
      continue;
    }
    const NamedSampleCounts share = captured - others;
    session->totals.Close(closed.reason, i == 0 ? &share : nullptr);
    others += session->totals.WithClosing().captured;
    ++tally_.closed_sessions;
  }
  return absl::OkStatus();
}

// Returns the session, or nullptr if it is `sender` itself or belongs to another node. If the session is unknown, adds
// it if `may_be_new` is true and the limits of the session and of the machine allow it, and otherwise returns nullptr.
absl::StatusOr<Session*> SqliteShardWriter::FindClosed(Session& sender, const ClosedSession& closed, bool may_be_new) {
  std::string_view id(reinterpret_cast<const char*>(closed.session_id.data()), closed.session_id.size());
  ASSIGN_OR_RETURN(Session * session, sessions_->TouchQuietly(id));
  if (session->machine == 0 && may_be_new && sender.unknown_closed < kUnknownClosedMax) {
    ASSIGN_OR_RETURN(const bool has_room, ledger_->HasRoom(sender.machine));
    if (has_room) {
      ++sender.unknown_closed;
      session->machine = sender.machine;
      session->last_seen_ns = clock_.Unix().value;
    }
  }
  if (session->machine == 0 && !may_be_new) return nullptr;
  if (session != &sender && session->machine == sender.machine) return session;
  ++tally_.closings_refused;
  return nullptr;
}

// Returns false if the definitions do not continue the held ones, or if a sample or event refers to an undefined one.
// The collector must then send a new dictionary.
bool SqliteShardWriter::TakeDefinitions(Session& session, const RowBatch& batch) {
  const bool starts = batch.before == DictionaryCounts();
  if (batch.generation == 0) {
    sessions_->StartGeneration(session, 0);
  } else if (session.dictionary == nullptr || session.dictionary->generation() != batch.generation) {
    if (batch.derived) {
      const bool follows =
          session.dictionary != nullptr && session.dictionary->generation() == batch.derived->generation;
      if (!follows || !sessions_->ContinueGeneration(session, batch.generation, batch.derived->eviction)) return false;
    } else if (starts) {
      sessions_->StartGeneration(session, batch.generation);
    } else {
      return false;
    }
  }
  if (batch.before != session.dictionary->counts()) {
    return false;
  }
  const DictionaryCounts before = session.dictionary->counts();
  bool ok = session.dictionary->Append(batch.definitions);
  for (const Sample& sample : batch.samples) ok = ok && session.dictionary->Defines(sample);
  for (const ProcessEvent& event : batch.events) ok = ok && session.dictionary->Defines(event);
  if (!ok) session.dictionary->Truncate(before);
  return ok;
}

// Only processes with samples get a row, so an event contains the description of its process.
absl::Status SqliteShardWriter::StoreEvents(Session& session, const RowBatch& batch) {
  const SampleTimes times(batch.clock, clock_.Unix().value);
  const AgeRules rules = Rules();
  OptOutFilter opt_outs(options_.opt_outs, batch, *session.dictionary);
  for (const ProcessEvent& event : batch.events) {
    if (opt_outs.Drops(event)) {
      session.totals.accounting.LostFor(LossReason::kOptedOutAtReducer).AddEvents(event.events);
      tally_.opted_out_events += event.events;
      continue;
    }
    bool clamped = false;
    StoredEvent row{.time_ns = times.ToUnixNs(event.time, &clamped),
                    .kind = event.kind,
                    .pid = event.pid.value,
                    .parent = event.parent.value,
                    .start_time_ns = event.start_time_ns,
                    .uid = event.uid,
                    .events = event.events,
                    .processes = event.processes,
                    .end = event.has_end() ? event.end : ProcessEnd{}};
    if (clamped) ++tally_.clamped_times;
    if (!rules.TakesEvent(UnixNs{row.time_ns})) {
      session.totals.accounting.LostFor(LossReason::kTooOld).AddEvents(event.events);
      tally_.too_old_events += event.events;
      continue;
    }
    const Day day = DayOf(UnixNs{row.time_ns});
    const std::pair<StringRef, uint32_t*> texts[] = {{event.name, &row.name},
                                                     {event.executable_path, &row.executable_path},
                                                     {event.container_id, &row.container_id},
                                                     {event.cgroup_path, &row.cgroup_path}};
    for (const auto& [ref, id] : texts) {
      if (ref.value == 0) continue;
      ASSIGN_OR_RETURN(*id, definitions_->String(*session.dictionary, ref, day));
    }
    events_->Add(session.machine, row);
    session.totals.stored.AddEvents(event.events);
    tally_.events += event.events;
  }
  return absl::OkStatus();
}

void SqliteShardWriter::CountReduced(const RowBatch& batch) {
  const DefinitionTables::Reduced reduced = definitions_->TakeReduced();
  if (reduced.texts == 0 && reduced.samples == 0 && reduced.unnumbered == 0) return;
  tally_.reduced_definitions += reduced.texts;
  tally_.reduced_samples += reduced.samples;
  tally_.Refuse(batch.node->node_id, "history_quota", reduced.texts + reduced.samples);
  tally_.unnumbered_samples += reduced.unnumbered;
  tally_.Refuse(batch.node->node_id, "process_numbers", reduced.unnumbered);
  if (uint64_t suppressed; reduced.unnumbered != 0 && unnumbered_.Allow(clock_.Monotonic(), &suppressed)) {
    LogError(
        "no number is free for a new process: samples of new processes are stored without their process until "
        "retention removes the oldest day; use more shards or a shorter retention file={} suppressed={}",
        options_.path, suppressed);
  }
}

AgeRules SqliteShardWriter::Rules() const {
  const MaintenanceOptions& ages = options_.maintenance;
  return AgeRules({.raw_ns = ages.raw_age_ns, .sum_ns = ages.sum_age_ns, .event_ns = ages.event_age_ns}, clock_.Unix(),
                  maintenance_->closed_before());
}

absl::StatusOr<ShardWriter::SessionState> SqliteShardWriter::FindSession(std::span<const uint8_t> session_id) {
  std::string_view id(reinterpret_cast<const char*>(session_id.data()), session_id.size());
  ASSIGN_OR_RETURN(uint64_t durable, sessions_->FindDurable(id));
  return SessionState{durable};
}

// Sessions look up their nodes again, because lost nodes get new numbers.
void SqliteShardWriter::ForgetTrie(Day day) {
  tries_->Forget(day);
  sessions_->ForgetTrie(day);
}

absl::Status SqliteShardWriter::Maintain(UnixNs now) {
  if (options_.maintenance.damage != nullptr) {
    std::vector<Day> repaired;
    set_aside_->Handle(&repaired);
    for (const Day day : repaired) ForgetTrie(day);
  }
  Maintenance::Removed removed;
  absl::Status status = maintenance_->Run(now, &removed);
  status.Update(losses_->Maintain(now, options_.maintenance.event_age_ns));
  counters_.AddExpiry(static_cast<uint64_t>(removed.over_share.rows), removed.size_stalled);
  if (uint64_t suppressed; removed.size_stalled && size_stalled_.Allow(clock_.Monotonic(), &suppressed)) {
    LogWarning(
        "the store is above its size limit, but removing samples would not make it smaller file={} limit={} "
        "suppressed={}",
        options_.path, options_.maintenance.bytes_max, suppressed);
  }
  if (removed.definitions) {
    sessions_->ForgetDays(removed.before, removed.strings_before);
    definitions_->ForgetDays(removed.strings_before);
    types_->Forget();
  }
  for (const int64_t machine : removed.over_share.machines) {
    sessions_->ForgetStoreIdsOf(machine);
    definitions_->ForgetStoreIdsOf(machine);
  }
  if (removed.sessions) sessions_->ForgetBefore(removed.sessions_before_ns);
  for (const Day day : removed.days) tries_->Forget(day);
  return status;
}

}  // namespace tributary::store
