#include "reducer/sqlite/shard_writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "profile/attributes.h"
#include "reducer/sqlite/minute_sums.h"
#include "reducer/sqlite/schema.h"
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
  ASSIGN_OR_RETURN(DefinitionTables definitions, DefinitionTables::Prepare(*database_, *ledger_));
  definitions_ = std::make_unique<DefinitionTables>(std::move(definitions));
  ASSIGN_OR_RETURN(SampleTypeTable types, SampleTypeTable::Prepare(*database_));
  types_ = std::make_unique<SampleTypeTable>(std::move(types));
  ASSIGN_OR_RETURN(EventWriter events, EventWriter::Prepare(*database_, *ledger_));
  events_ = std::make_unique<EventWriter>(std::move(events));
  ASSIGN_OR_RETURN(tries_, DayTries::Prepare(*database_, *ledger_, options_.trie, clock_, metrics_));
  ASSIGN_OR_RETURN(SessionTable sessions, SessionTable::Prepare(*database_, *ledger_, options_.sessions, metrics_));
  sessions_ = std::make_unique<SessionTable>(std::move(sessions));
  ASSIGN_OR_RETURN(maintenance_, Maintenance::Prepare(*database_, *ledger_, options_.maintenance));
  ASSIGN_OR_RETURN(put_samples_, database_->Prepare("INSERT INTO sample_chunk (minute, machine, type, samples, "
                                                    "raw_bytes, columns, samples_end) VALUES (?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(put_sums_, database_->Prepare(kInsertMinuteSum));
  ASSIGN_OR_RETURN(set_aside_, SetAside::Prepare(
                                   *database_, *ledger_, options_.trie.nodes_max,
                                   [this](std::string_view text, Day day) { return definitions_->Text(text, day); },
                                   clock_, metrics_));
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
  const std::optional<uint64_t> samples_end = samples_end_;
  absl::StatusOr<std::vector<Outcome>> outcomes = TryCommit(group);
  if (outcomes.ok()) {
    sessions_->Settle();
    ledger_->MarkCommitted();
    tries_->MarkCommitted();
    counters_.Add(tally_);
  } else {
    sessions_->Undo();
    ledger_->Rollback();
    definitions_->Rollback();
    types_->Forget();
    events_->Forget();
    samples_end_ = samples_end;
    tries_->Rollback();
    // Only sessions of this group can have ids of rows and nodes that were rolled back. Undo has removed these ids.
  }
  return outcomes;
}

absl::StatusOr<std::vector<ShardWriter::Outcome>> SqliteShardWriter::TryCommit(std::span<const RowBatch> group) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(*database_));
  ledger_->SetToday(DayOf(clock_.Unix()));
  std::vector<Outcome> outcomes;
  outcomes.reserve(group.size());
  for (const RowBatch& pending : group) {
    ASSIGN_OR_RETURN(Outcome outcome, Apply(pending));
    outcomes.push_back(outcome);
  }
  RETURN_IF_ERROR(WriteTries());
  RETURN_IF_ERROR(definitions_->WriteProcesses());
  RETURN_IF_ERROR(events_->Write());
  RETURN_IF_ERROR(sessions_->WriteTouched(clock_.Unix().value));
  RETURN_IF_ERROR(ledger_->Write());
  RETURN_IF_ERROR(transaction.Commit());
  return outcomes;
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
    RETURN_IF_ERROR(StoreSamples(session, batch));
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

absl::Status SqliteShardWriter::StoreSamples(Session& session, const RowBatch& batch) {
  RETURN_IF_ERROR(definitions_->Redescribe(*session.dictionary, ProcessRef{batch.before.processes},
                                           {session.machine, session.boot_id}));
  const SampleTimes times(batch.clock, clock_.Unix().value);
  const AgeRules rules = Rules();
  std::vector<Typed> rows;
  rows.reserve(batch.samples.size());
  struct Type {
    SampleType number{};
    TypeNo no;
    Day day{INT32_MIN};  // the latest day that the type was looked up for
    uint64_t stored = 0, unnamed = 0, too_old = 0;
  };
  std::vector<Type> types;
  std::array<uint64_t, 3> cut{};        // samples, by TrieCut
  std::array<uint16_t, 256> type_of{};  // by the source's number: 0, or the index of the type plus 1
  for (const Sample& sample : batch.samples) {
    bool clamped = false;
    const int64_t time_ns = times.ToUnixNs(sample.time, &clamped);
    if (clamped) ++tally_.clamped_times;
    uint16_t& place = type_of[static_cast<uint8_t>(sample.type)];
    if (place == 0) {
      types.push_back({.number = sample.type});
      place = static_cast<uint16_t>(types.size());
    }
    Type& type = types[place - 1];
    if (rules.PlaceOf(UnixNs{time_ns}) == SamplePlace::kTooOld) {
      type.too_old += sample.count;
      continue;
    }
    if (const Day day = DayOf(UnixNs{time_ns}); type.day < day) {
      ASSIGN_OR_RETURN(type.no, types_->Find(NameOf(batch, sample.type), session.machine, day));
      type.day = day;
    }
    if (type.no.value == 0) type.unnamed += sample.count;
    ASSIGN_OR_RETURN(Typed row, Map(session, sample, type.no, time_ns));
    type.stored += row.sample.count;
    const auto ending = static_cast<size_t>(row.sample.ending);
    session.totals.endings[ending] += row.sample.count;
    tally_.endings[ending] += row.sample.count;
    tally_.samples += row.sample.count;
    cut[static_cast<size_t>(row.cut)] += row.sample.count;
    rows.push_back(row);
  }
  for (const TrieCut cause : {TrieCut::kShare, TrieCut::kFull}) {
    tally_.cut_stacks += cut[static_cast<size_t>(cause)];
    tally_.Refuse(batch.node->node_id, ReasonOf(cause), cut[static_cast<size_t>(cause)]);
  }
  std::optional<BoundedTypes> names;
  NamedSampleCounts& too_old = session.totals.accounting.LostFor(LossReason::kTooOld);
  for (const Type& type : types) {
    tally_.too_old_samples += type.too_old;
    if (type.number == SampleType::kCpu) {
      session.totals.stored += type.stored;
      too_old += type.too_old;
      continue;
    }
    const SampleTypeInfo name = NameOf(batch, type.number);
    if (!names) names.emplace(session.totals.Types());
    session.totals.stored.Add(names->Bound(name), type.stored);
    too_old.Add(names->Bound(name), type.too_old);
    if (type.unnamed != 0) CountUnnamed(batch, name, type.unnamed);
  }
  // Sorts by type, then by time: each minute of each type is then one run. Most batches have one type and come in
  // order.
  auto before = [](const Typed& a, const Typed& b) {
    return std::pair(a.type, a.sample.time_ns) < std::pair(b.type, b.sample.time_ns);
  };
  if (!std::is_sorted(rows.begin(), rows.end(), before)) std::stable_sort(rows.begin(), rows.end(), before);
  return WriteChunks(session, rows, rules);
}

// Only processes with samples get a row, so an event contains the description of its process.
absl::Status SqliteShardWriter::StoreEvents(Session& session, const RowBatch& batch) {
  const SampleTimes times(batch.clock, clock_.Unix().value);
  const AgeRules rules = Rules();
  for (const ProcessEvent& event : batch.events) {
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
  if (reduced.texts == 0 && reduced.samples == 0) return;
  tally_.reduced_definitions += reduced.texts;
  tally_.reduced_samples += reduced.samples;
  tally_.Refuse(batch.node->node_id, "history_quota", reduced.texts + reduced.samples);
}

void SqliteShardWriter::CountUnnamed(const RowBatch& batch, const SampleTypeInfo& type, uint64_t samples) {
  if (type == kUndefinedType) {
    tally_.nameless_types += samples;
    return;
  }
  tally_.refused_types += samples;
  if (uint64_t suppressed; refused_types_.Allow(clock_.Monotonic(), &suppressed)) {
    LogWarning(
        "too many sample types: samples of this type are stored without its name type={} unit={} host={} suppressed={}",
        EscapeForDisplay(type.name), EscapeForDisplay(type.unit), EscapeForDisplay(batch.node->host_name), suppressed);
  }
}

absl::StatusOr<SqliteShardWriter::Typed> SqliteShardWriter::Map(Session& session, const Sample& sample, TypeNo type,
                                                                int64_t time_ns) {
  const Day day = DayOf(UnixNs{time_ns});
  Typed row;
  row.type = type;
  row.sample.time_ns = time_ns;
  ASSIGN_OR_RETURN(SessionDictionary::StoreThread thread,
                   definitions_->Thread(*session.dictionary, sample.thread, {session.machine, session.boot_id},
                                        SlotOf(UnixNs{time_ns})));
  row.sample.thread = thread.no;
  row.sample.process = thread.process;
  ASSIGN_OR_RETURN(const MappedNode node, MapNode(session, sample.node, day));
  row.sample.node = node.node.value;
  row.cut = node.cut;
  row.sample.count = sample.count;
  row.sample.value = sample.value;
  row.sample.cpu = sample.cpu;
  if (!FitsSample(session.dictionary->string(sample.attributes))) {
    ++tally_.refused_attributes;
  } else if (sample.attributes.value != 0) {
    ASSIGN_OR_RETURN(row.sample.attributes, definitions_->String(*session.dictionary, sample.attributes, day));
  }
  // This release cannot name the ending of a newer collector.
  row.sample.ending = static_cast<uint8_t>(sample.ending) < kEndingCount ? sample.ending : Ending::kUnknown;
  if (row.cut != TrieCut::kNone) row.sample.ending = Ending::kCutByQuota;
  return row;
}

// If the trie has no room for a new node, returns the stack's deepest node that the trie already contains.
absl::StatusOr<MappedNode> SqliteShardWriter::MapNode(Session& session, NodeRef ref, Day day) {
  SessionDictionary& dictionary = *session.dictionary;
  SessionDictionary::DayIds& ids = dictionary.IdsOfDay(day);
  if (ref.value == 0 || ids.nodes[ref.value] != 0) return MappedNode{NodeNo{ids.nodes[ref.value]}};
  ASSIGN_OR_RETURN(DayTrie * trie, tries_->Find(day));
  std::vector<NodeRef> unmapped;
  for (NodeRef at = ref; at.value != 0 && ids.nodes[at.value] == 0; at = dictionary.node(at).parent) {
    unmapped.push_back(at);
  }
  const size_t nodes_before = trie->node_count();
  const absl::Cleanup charge = [&] { ledger_->AddTrieNodes(day, session.machine, trie->node_count() - nodes_before); };
  uint32_t parent = ids.nodes[dictionary.node(unmapped.back()).parent.value];
  for (auto it = unmapped.rbegin(); it != unmapped.rend(); ++it) {
    const FrameRef frame_ref = dictionary.node(*it).frame;
    uint32_t& frame = ids.frames[frame_ref.value];
    if (frame == 0 && frame_ref.value != 0) {
      const Frame& raw = dictionary.frame(frame_ref);
      ASSIGN_OR_RETURN(uint32_t executable, definitions_->Executable(dictionary, raw.executable, day));
      FrameRow row{raw.kind, raw.is_caller, ExecutableNo{executable}, raw.address, raw.position, {}};
      if (raw.name.value != 0) {
        ASSIGN_OR_RETURN(row.name.value, definitions_->String(dictionary, raw.name, day));
      }
      frame = trie->InternFrame(row, session.machine);
    }
    // No node has a frame that the trie does not contain. Number 0 would stand for a node without a frame.
    const bool has_frame = frame != 0 || frame_ref.value == 0;
    const uint32_t node = has_frame ? trie->InternNode(parent, frame, session.machine) : 0;
    if (node == 0) return MappedNode{NodeNo{parent}, trie->full() ? TrieCut::kFull : TrieCut::kShare};
    ids.nodes[it->value] = parent = node;
  }
  return MappedNode{NodeNo{parent}};
}

AgeRules SqliteShardWriter::Rules() const {
  const MaintenanceOptions& ages = options_.maintenance;
  return AgeRules({.raw_ns = ages.raw_age_ns, .sum_ns = ages.sum_age_ns, .event_ns = ages.event_age_ns}, clock_.Unix(),
                  maintenance_->closed_before());
}

absl::Status SqliteShardWriter::WriteChunks(const Session& session, std::span<const Typed> samples,
                                            const AgeRules& rules) {
  if (!samples_end_) {
    ASSIGN_OR_RETURN(const int64_t stored, database_->QueryInt(kSamplesEnd));
    samples_end_ = static_cast<uint64_t>(stored);
  }
  std::vector<StoredSample> chunk;
  int64_t raw_from = 0;  // earlier minutes have samples that are only in sums
  for (size_t i = 0; i < samples.size();) {
    const TypeNo type = samples[i].type;
    const int64_t minute = MinuteOf(UnixNs{samples[i].sample.time_ns});
    chunk.clear();
    for (; i < samples.size() && samples[i].type == type && MinuteOf(UnixNs{samples[i].sample.time_ns}) == minute;
         ++i) {
      chunk.push_back(samples[i].sample);
      *samples_end_ += samples[i].sample.count;
    }
    if (rules.PlaceOfMinute(minute) == SamplePlace::kSumsOnly) {
      for (const StoredSample& sample : chunk) tally_.sums_only += sample.count;
      raw_from = std::max(raw_from, minute + 1);
    } else {
      const PackedColumns packed = PackColumns(EncodeSamples(chunk));
      put_samples_.Bind(minute, session.machine, type.value, chunk.size(), packed.raw_bytes, packed.bytes,
                        *samples_end_);
      RETURN_IF_ERROR(put_samples_.Run());
      ledger_->AddData(DayOfMinute(minute), session.machine, NodeLedger::BytesOf(packed.bytes.size()));
    }
    if (minute < maintenance_->closed_before()) {
      SumTable sums(types_->AggregationOf(type));
      for (const StoredSample& sample : chunk) sums.Add(sample);
      const MinuteKey key{minute, session.machine, static_cast<int>(type.value)};
      ASSIGN_OR_RETURN(const size_t bytes, InsertMinuteSum(put_sums_, key, sums.Sorted()));
      ledger_->AddData(DayOfMinute(minute), session.machine, NodeLedger::BytesOf(bytes));
    }
  }
  if (raw_from == 0) return absl::OkStatus();
  // Readers must not look for these samples in chunks, and exporters must count them although no chunk does.
  RETURN_IF_ERROR(maintenance_->RaiseWatermark("raw_from", raw_from));
  return maintenance_->RaiseWatermark("samples_end", static_cast<int64_t>(*samples_end_));
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
    set_aside_->Handle(*options_.maintenance.damage, &repaired);
    for (const Day day : repaired) ForgetTrie(day);
  }
  Maintenance::Removed removed;
  absl::Status status = maintenance_->Run(now, &removed);
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
