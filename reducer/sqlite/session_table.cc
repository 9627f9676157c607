#include "reducer/sqlite/session_table.h"

#include <algorithm>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/session_columns.h"

namespace tributary::store {

namespace {

constexpr int kClosedAtOnceMax = 256;  // sessions of earlier boots; the next session of the node closes more

// A session without a batch for this time is idle: a collector sends a batch every 5 s.
constexpr int64_t kIdleNs = kNsPerMinute;

constexpr int kRemovedAtOnceMax = 4;  // if a machine has no room for a new session

constexpr size_t kSessionIdBytes = 16;  // keys of other sources are longer

}  // namespace

std::string SessionKey(const Source& source) {
  constexpr size_t kIdBytesMax = 64;
  if (source.kind == SourceKind::kSession) {
    TRIBUTARY_CHECK(source.id.size() == kSessionIdBytes);
    return source.id;
  }
  TRIBUTARY_CHECK(!source.id.empty() && source.id.size() <= kIdBytesMax);
  std::string key(kSessionIdBytes, '\0');
  key.push_back(static_cast<char>(source.kind));
  return key + source.id;
}

absl::StatusOr<SessionTable> SessionTable::Prepare(Database& database, NodeLedger& node_ledger, Limits limits,
                                                   Metrics& metrics) {
  SessionTable table;
  table.limits_ = limits;
  table.database_ = &database;
  table.node_ledger_ = &node_ledger;
  table.removed_sessions_ =
      &metrics.AddCounter("tributary_reducer_history_quota_sessions_total",
                          "Old sessions whose accounting was removed, because their node has sent more "
                          "definitions and sessions than --node-definition-bytes-per-day allows");
  table.memory_ = std::make_unique<SessionLedger>(limits.memory_bytes_max, metrics);
  ASSIGN_OR_RETURN(
      table.find_,
      database.Prepare("SELECT machine, boot_id, last_seen, durable_sequence, captured, idle, lost, "
                       "stored, wire_bytes, endings, closed_reason, closed_captured, boot_ns, rowid, types, " +
                       std::string(kSessionBytes) + " FROM session WHERE id = ?"));
  ASSIGN_OR_RETURN(
      table.put_,
      database.Prepare(
          "INSERT OR REPLACE INTO session (last_seen, durable_sequence, captured, idle, lost, stored, wire_bytes, "
          "endings, closed_reason, closed_captured, boot_ns, boot_id, types, machine, id) "
          "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) RETURNING rowid"));
  // The update leaves indexed columns as they were, so a session's batch changes one page.
  ASSIGN_OR_RETURN(
      table.update_,
      database.Prepare("UPDATE session SET last_seen = ?, durable_sequence = ?, captured = ?, idle = ?, lost = ?, "
                       "stored = ?, wire_bytes = ?, endings = ?, closed_reason = ?, closed_captured = ?, boot_ns = ?, "
                       "boot_id = ?, types = ? WHERE rowid = ? AND id = ?"));
  ASSIGN_OR_RETURN(table.find_earlier_boots_,
                   database.Prepare("SELECT id FROM session WHERE machine = ? AND boot_ns < ? AND boot_id <> ? AND "
                                    "closed_reason = -1 AND length(id) = 16 LIMIT ?"));
  static_assert(kSessionIdBytes == 16);
  // In the order of the index: the sessions that began first. The newest one stays, because the row of a machine
  // without a session is removed.
  ASSIGN_OR_RETURN(
      table.remove_oldest_,
      database.Prepare("DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE machine = ?1 "
                       "AND last_seen < ?2 AND length(id) = 16 AND rowid < (SELECT max(rowid) FROM session "
                       "WHERE machine = ?1) ORDER BY rowid LIMIT ?3) RETURNING " +
                       std::string(kSessionBytes)));
  return table;
}

absl::StatusOr<bool> SessionTable::Load(std::string_view id, Session* session) {
  ASSIGN_OR_RETURN(bool found, find_.Bind(id).Step());
  if (!found) return false;
  const absl::Cleanup reset = [this] { find_.Reset(); };
  session->machine = find_.Int(0);
  session->boot_id = find_.Bytes(1);
  session->last_seen_ns = find_.Int(2);
  SessionTotals& totals = session->totals;
  totals.durable_sequence = static_cast<uint64_t>(find_.Int(3));
  totals.accounting.captured = static_cast<uint64_t>(find_.Int(4));
  totals.accounting.idle = static_cast<uint64_t>(find_.Int(5));
  DecodeLosses(find_.Bytes(6), &totals.accounting);
  totals.stored = static_cast<uint64_t>(find_.Int(7));
  totals.wire_bytes = static_cast<uint64_t>(find_.Int(8));
  DecodeCounters(find_.Bytes(9), totals.endings);
  totals.closed_reason = find_.Int(10);
  totals.closed_captured = static_cast<uint64_t>(find_.Int(11));
  session->boot_ns = find_.Int(12);
  session->row = {.id = find_.Int(13),
                  .machine = session->machine,
                  .charged_bytes = static_cast<uint64_t>(NodeLedger::BytesOf(static_cast<uint64_t>(find_.Int(15))))};
  RETURN_IF_ERROR(find_.InFile(DecodeSessionTypes(find_.Bytes(14), &totals)));
  return true;
}

absl::StatusOr<uint64_t> SessionTable::FindDurable(std::string_view id) {
  if (auto it = by_id_.find(ToAbsl(id)); it != by_id_.end()) return it->second->totals.durable_sequence;
  Session session;
  ASSIGN_OR_RETURN(bool found, Load(id, &session));
  if (!found) return absl::NotFoundError("the session is not in the store");
  return session.totals.durable_sequence;
}

absl::StatusOr<Session*> SessionTable::Touch(std::string_view id) { return Touch(id, /*is_sender=*/true); }

absl::StatusOr<Session*> SessionTable::TouchQuietly(std::string_view id) { return Touch(id, /*is_sender=*/false); }

absl::StatusOr<Session*> SessionTable::Touch(std::string_view id, bool is_sender) {
  auto it = by_id_.find(ToAbsl(id));
  bool is_new = it == by_id_.end();
  if (is_new) {
    Session session;
    session.id = id;
    ASSIGN_OR_RETURN([[maybe_unused]] bool found, Load(id, &session));
    sessions_.push_front(std::move(session));
    by_id_.emplace(std::string(id), sessions_.begin());
  } else {
    sessions_.splice(sessions_.begin(), sessions_, it->second);
  }
  Session& session = sessions_.front();
  if (session.touched != nullptr) {
    session.touched->is_sender |= is_sender;
    return &session;
  }
  session.touched =
      &touched_.emplace_back(&session, is_new, is_sender, session.totals, session.last_seen_ns, session.row);
  if (session.dictionary != nullptr) session.touched->counts = session.dictionary->counts();
  return &session;
}

absl::Status SessionTable::CloseEarlierBoots(const Session& first_of_boot) {
  std::vector<std::string> earlier;
  find_earlier_boots_.Bind(first_of_boot.machine, first_of_boot.boot_ns, first_of_boot.boot_id, kClosedAtOnceMax);
  for (;;) {
    ASSIGN_OR_RETURN(bool row, find_earlier_boots_.Step());
    if (!row) break;
    earlier.emplace_back(find_earlier_boots_.Bytes(0));
  }
  // The sessions of this transaction are not in the file yet.
  for (const Touched& touched : touched_) {
    const Session& session = *touched.session;
    if (session.id.size() == kSessionIdBytes && session.machine == first_of_boot.machine &&
        session.boot_id != first_of_boot.boot_id && session.boot_ns < first_of_boot.boot_ns &&
        session.totals.closed_reason == SessionTotals::kOpen) {
      earlier.push_back(session.id);
    }
  }
  for (const std::string& id : earlier) {
    ASSIGN_OR_RETURN(Session * session, Touch(id, /*is_sender=*/false));
    session->totals.closed_reason = static_cast<int64_t>(LossReason::kCollectorKilled);
    session->totals.closed_captured = session->totals.accounting.captured;
  }
  return absl::OkStatus();
}

void SessionTable::StartGeneration(Session& session, uint32_t generation) {
  Replace(session, std::make_unique<SessionDictionary>(generation));
}

bool SessionTable::ContinueGeneration(Session& session, uint32_t generation, const Eviction& eviction) {
  std::unique_ptr<SessionDictionary> derived = session.dictionary->Derive(generation, eviction);
  if (derived == nullptr) return false;
  Replace(session, std::move(derived));
  return true;
}

void SessionTable::Replace(Session& session, std::unique_ptr<SessionDictionary> dictionary) {
  TRIBUTARY_CHECK(session.touched != nullptr);
  if (!std::exchange(session.touched->replaced, true)) {
    session.touched->dictionary = std::move(session.dictionary);
  }
  session.dictionary = std::move(dictionary);
}

absl::Status SessionTable::VisitTouched(
    absl::FunctionRef<absl::Status(const Session&, const SessionTotals& before)> visit) const {
  for (const Touched& touched : touched_) {
    if (touched.session->machine != 0) RETURN_IF_ERROR(visit(*touched.session, touched.totals));
  }
  return absl::OkStatus();
}

absl::Status SessionTable::WriteTouched(int64_t now_ns) {
  now_ns_ = now_ns;
  for (const Touched& touched : touched_) {
    Session& session = *touched.session;
    if (session.machine == 0) continue;  // nothing of the session was kept
    if (touched.is_sender) session.last_seen_ns = now_ns;
    RETURN_IF_ERROR(Write(session));
  }
  return absl::OkStatus();
}

absl::Status SessionTable::Write(Session& session) {
  const SessionTotals& totals = session.totals;
  const std::string lost = EncodeLosses(totals.accounting);
  const std::string types = EncodeSessionTypes(totals);
  const std::string endings = EncodeCounters(totals.endings);
  auto bind = [&](Statement& statement, const auto&... behind) {
    statement.Bind(session.last_seen_ns, totals.durable_sequence, totals.accounting.captured.total(),
                   totals.accounting.idle, lost, totals.stored.total(), totals.wire_bytes, endings,
                   totals.closed_reason, totals.closed_captured.total(), session.boot_ns, session.boot_id, types,
                   behind...);
  };
  const auto bytes =
      static_cast<uint64_t>(NodeLedger::BytesOf(SessionBytes(session.id, session.boot_id, lost, endings, types)));
  bool is_stored = false;
  if (session.row.id != 0 && session.row.machine == session.machine) {
    bind(update_, session.row.id, session.id);
    RETURN_IF_ERROR(update_.Run());
    is_stored = database_->changes() != 0;  // otherwise, the row was removed, and its rowid may be used again
  }
  if (!is_stored) {
    RETURN_IF_ERROR(MakeRoom(session));
    bind(put_, session.machine, session.id);
    ASSIGN_OR_RETURN(session.row.id, put_.RunReturning());
    session.row.machine = session.machine;
    session.row.charged_bytes = 0;
  }
  if (bytes > session.row.charged_bytes) {
    node_ledger_->AddDefinitions(session.machine, bytes - session.row.charged_bytes);
    session.row.charged_bytes = bytes;
  }
  return absl::OkStatus();
}

absl::Status SessionTable::MakeRoom(const Session& session) {
  ASSIGN_OR_RETURN(const bool has_room, node_ledger_->HasRoom(session.machine));
  if (has_room) return absl::OkStatus();
  uint64_t rows = 0, bytes = 0;
  remove_oldest_.Bind(session.machine, now_ns_ - kKeptForNs, kRemovedAtOnceMax);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, remove_oldest_.Step());
    if (!row) break;
    bytes += static_cast<uint64_t>(NodeLedger::BytesOf(static_cast<uint64_t>(remove_oldest_.Int(0))));
    ++rows;
  }
  if (rows == 0) return absl::OkStatus();
  node_ledger_->RemoveDefinitions(DayOf(UnixNs{now_ns_}), session.machine, static_cast<int64_t>(bytes));
  removed_.emplace_back(session.node_id, rows);
  return absl::OkStatus();
}

void SessionTable::Settle() {
  for (const Touched& touched : touched_) {
    Session& session = *touched.session;
    session.touched = nullptr;
    CountMemory(session);
    if (session.machine == 0) Erase(by_id_.find(session.id)->second);
  }
  touched_.clear();
  for (const auto& [node_id, rows] : std::exchange(removed_, {})) {
    removed_sessions_->Add(rows);
    if (limits_.refusals != nullptr && !node_id.empty()) limits_.refusals->Add(node_id, "history_quota", rows);
  }
  while (sessions_.size() > std::max<size_t>(limits_.sessions_max, 1)) Erase(std::prev(sessions_.end()));
  LimitMemory();
}

// The session that was used last stays whatever its size: its own limits bound it, and so it can go on.
void SessionTable::LimitMemory() {
  const size_t excess = memory_->Excess();
  if (excess == 0) return;
  std::vector<Evictable> others;
  std::vector<List::iterator> places;
  for (auto it = std::next(sessions_.begin()); it != sessions_.end(); ++it) {
    others.push_back({it->memory.total(), it->last_seen_ns < now_ns_ - kIdleNs, it->node_id});
    places.push_back(it);
  }
  for (const size_t chosen : ChooseEvictions(others, excess)) {
    memory_->CountEviction(others[chosen].is_idle);
    const std::string& node_id = places[chosen]->node_id;
    if (limits_.refusals != nullptr && !node_id.empty()) limits_.refusals->Add(node_id, "memory");
    Erase(places[chosen]);
  }
}

void SessionTable::Undo() {
  removed_.clear();
  for (Touched& touched : touched_) {
    Session& session = *touched.session;
    session.touched = nullptr;
    if (touched.is_new) {
      Erase(by_id_.find(session.id)->second);
      continue;
    }
    session.totals = touched.totals;
    session.last_seen_ns = touched.last_seen_ns;
    session.row = touched.row;
    if (touched.replaced) session.dictionary = std::move(touched.dictionary);
    if (session.dictionary != nullptr) session.dictionary->Truncate(touched.counts);
    CountMemory(session);
  }
  touched_.clear();
}

void SessionTable::CountMemory(Session& session) {
  constexpr size_t kEntryBytes = sizeof(Session) + 2 * sizeof(void*) + sizeof(std::string) + sizeof(List::iterator);
  MemoryUse use;
  use[MemoryKind::kSessions] = kEntryBytes;
  if (session.dictionary != nullptr) {
    use[MemoryKind::kDictionaries] = session.dictionary->table_bytes();
    use[MemoryKind::kStrings] = session.dictionary->string_bytes();
  }
  memory_->Count(&session.memory, use);
}

void SessionTable::Erase(List::iterator it) {
  memory_->Count(&it->memory, {});
  by_id_.erase(it->id);
  sessions_.erase(it);
}

void SessionTable::ForgetDays(Day before, Day strings_before) {
  for (Session& session : sessions_) {
    if (session.dictionary == nullptr) continue;
    session.dictionary->ForgetDays(before, strings_before);
    CountMemory(session);
  }
}

void SessionTable::ForgetStoreIdsOf(int64_t machine) {
  for (Session& session : sessions_) {
    if (session.machine != machine || session.dictionary == nullptr) continue;
    session.dictionary->ForgetStoreIds();
    CountMemory(session);
  }
}

void SessionTable::ForgetOldNumbers(const ProcessNumbers& numbers) {
  for (Session& session : sessions_) {
    if (session.dictionary == nullptr) continue;
    session.dictionary->ForgetNumbers([&](uint32_t no) { return numbers.IsOld(NumberKind::kProcess, no); },
                                      [&](uint32_t no) { return numbers.IsOld(NumberKind::kThread, no); });
  }
}

void SessionTable::ForgetTrie(Day day) {
  for (Session& session : sessions_) {
    if (session.dictionary == nullptr) continue;
    session.dictionary->ForgetTrie(day);
    CountMemory(session);
  }
}

void SessionTable::ForgetBefore(int64_t last_seen_ns) {
  for (auto it = sessions_.begin(); it != sessions_.end();) {
    auto next = std::next(it);
    if (it->last_seen_ns < last_seen_ns) Erase(it);
    it = next;
  }
}

}  // namespace tributary::store
