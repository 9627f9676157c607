#include "reducer/store/session_table.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/store/column_codec.h"

namespace tributary::store {

namespace {

constexpr int kClosedAtOnceMax = 256;  // sessions of earlier boots; the next session of the node closes more

}  // namespace

Accounting SessionTotals::WithClosing() const {
  Accounting all = accounting;
  if (closed_reason == kOpen) return all;
  all.captured = std::max(known(), closed_captured);
  // A reason of a later release still counts.
  const auto reason = static_cast<uint64_t>(closed_reason) < kLossReasonCount
                          ? static_cast<size_t>(closed_reason)
                          : static_cast<size_t>(LossReason::kCollectorKilled);
  all.lost[reason] += all.captured - known();
  return all;
}

absl::StatusOr<SessionTable> SessionTable::Prepare(Database& database, Limits limits) {
  SessionTable table;
  table.limits_ = limits;
  ASSIGN_OR_RETURN(table.find_,
                   database.Prepare("SELECT machine, boot_id, last_seen, durable_sequence, captured, idle, lost, "
                                    "stored, wire_bytes, endings, closed_reason, closed_captured, boot_ns FROM session "
                                    "WHERE id = ?"));
  ASSIGN_OR_RETURN(
      table.put_, database.Prepare("INSERT OR REPLACE INTO session (id, machine, boot_id, last_seen, durable_sequence, "
                                   "captured, idle, lost, stored, wire_bytes, endings, closed_reason, "
                                   "closed_captured, boot_ns) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  ASSIGN_OR_RETURN(table.find_earlier_boots_,
                   database.Prepare("SELECT id FROM session WHERE machine = ? AND boot_ns < ? AND boot_id <> ? AND "
                                    "closed_reason = -1 LIMIT ?"));
  return table;
}

absl::StatusOr<bool> SessionTable::Load(std::string_view id, Session* session) {
  ASSIGN_OR_RETURN(bool found, find_.Bind(id).Step());
  if (!found) return false;
  session->machine = find_.Int(0);
  session->boot_id = find_.Bytes(1);
  session->last_seen_ns = find_.Int(2);
  SessionTotals& totals = session->totals;
  totals.durable_sequence = static_cast<uint64_t>(find_.Int(3));
  totals.accounting.captured = static_cast<uint64_t>(find_.Int(4));
  totals.accounting.idle = static_cast<uint64_t>(find_.Int(5));
  DecodeCounters(find_.Bytes(6), totals.accounting.lost);
  totals.stored = static_cast<uint64_t>(find_.Int(7));
  totals.wire_bytes = static_cast<uint64_t>(find_.Int(8));
  DecodeCounters(find_.Bytes(9), totals.endings);
  totals.closed_reason = find_.Int(10);
  totals.closed_captured = static_cast<uint64_t>(find_.Int(11));
  session->boot_ns = find_.Int(12);
  find_.Reset();
  return true;
}

absl::StatusOr<uint64_t> SessionTable::FindDurable(std::string_view id) {
  if (auto it = by_id_.find(ToAbsl(id)); it != by_id_.end()) return it->second->totals.durable_sequence;
  Session session;
  ASSIGN_OR_RETURN(bool found, Load(id, &session));
  if (!found) return absl::NotFoundError("session was never seen");
  return session.totals.durable_sequence;
}

absl::StatusOr<Session*> SessionTable::Touch(std::string_view id) { return Touch(id, /*spoke=*/true); }

absl::StatusOr<Session*> SessionTable::TouchQuietly(std::string_view id) { return Touch(id, /*spoke=*/false); }

absl::StatusOr<Session*> SessionTable::Touch(std::string_view id, bool spoke) {
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
    for (Before& before : touched_) {
      if (before.session != &sessions_.front()) continue;
      before.spoke |= spoke;
      return before.session;
    }
  }
  Session& session = sessions_.front();
  Before before{&session, is_new, spoke, session.totals, session.last_seen_ns, {}, false, nullptr};
  if (session.dictionary != nullptr) before.counts = session.dictionary->counts();
  touched_.push_back(std::move(before));
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
  // Those of this transaction are not in the file yet.
  for (const Before& before : touched_) {
    const Session& session = *before.session;
    if (session.machine == first_of_boot.machine && session.boot_id != first_of_boot.boot_id &&
        session.boot_ns < first_of_boot.boot_ns && session.totals.closed_reason == SessionTotals::kOpen) {
      earlier.push_back(session.id);
    }
  }
  for (const std::string& id : earlier) {
    ASSIGN_OR_RETURN(Session * session, Touch(id, /*spoke=*/false));
    session->totals.closed_reason = static_cast<int64_t>(LossReason::kCollectorKilled);
    session->totals.closed_captured = session->totals.accounting.captured;
  }
  return absl::OkStatus();
}

SessionTable::Before& SessionTable::BeforeOf(const Session& session) {
  for (Before& before : touched_) {
    if (before.session == &session) return before;
  }
  CheckFailed(__FILE__, __LINE__, "session was touched");
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
  Before& before = BeforeOf(session);
  if (!before.replaced) {
    before.replaced = true;
    before.dictionary = std::move(session.dictionary);
  }
  session.dictionary = std::move(dictionary);
}

absl::Status SessionTable::WriteTouched(int64_t now_ns) {
  for (const Before& before : touched_) {
    Session& session = *before.session;
    if (session.machine == 0) continue;  // nothing of it was kept
    if (before.spoke) session.last_seen_ns = now_ns;
    const SessionTotals& totals = session.totals;
    const std::string lost = EncodeCounters(totals.accounting.lost);
    const std::string endings = EncodeCounters(totals.endings);
    put_.Bind(session.id, session.machine, session.boot_id, session.last_seen_ns, totals.durable_sequence,
              totals.accounting.captured, totals.accounting.idle, lost, totals.stored, totals.wire_bytes, endings,
              totals.closed_reason, totals.closed_captured, session.boot_ns);
    RETURN_IF_ERROR(put_.Run());
  }
  return absl::OkStatus();
}

void SessionTable::Settle() {
  for (const Before& before : touched_) {
    if (before.session->machine == 0) Erase(by_id_.find(before.session->id)->second);
  }
  touched_.clear();
  size_t bytes = 0, count = 0;
  for (auto it = sessions_.begin(); it != sessions_.end(); ++count) {
    if (it->dictionary != nullptr) bytes += it->dictionary->memory_bytes();
    auto next = std::next(it);
    // The one in use stays whatever its size: its limits bound it.
    if (count > 0 && (count >= limits_.sessions_max || bytes > limits_.dictionary_bytes_max)) Erase(it);
    it = next;
  }
}

void SessionTable::Undo() {
  for (Before& before : touched_) {
    Session& session = *before.session;
    if (before.is_new) {
      Erase(by_id_.find(session.id)->second);
      continue;
    }
    session.totals = before.totals;
    session.last_seen_ns = before.last_seen_ns;
    if (before.replaced) session.dictionary = std::move(before.dictionary);
    if (session.dictionary != nullptr) session.dictionary->Truncate(before.counts);
  }
  touched_.clear();
}

void SessionTable::Erase(List::iterator it) {
  by_id_.erase(it->id);
  sessions_.erase(it);
}

void SessionTable::ForgetStoreIds() {
  for (Session& session : sessions_) {
    if (session.dictionary != nullptr) session.dictionary->ForgetStoreIds();
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
