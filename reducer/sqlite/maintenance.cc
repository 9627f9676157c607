#include "reducer/sqlite/maintenance.h"

#include <algorithm>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sample_type_table.h"

namespace tributary::store {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();
// After this many samples a call closes no further minute: about 0.1 s of work.
constexpr int64_t kSamplesPerRun = 500'000;
constexpr int64_t kSizeStepMinutes = 60;
constexpr int64_t kSessionsEveryNs = 10 * kNsPerMinute;

Day DayOfSlot(int64_t slot) { return DayOf(Slot{static_cast<int32_t>(slot)}); }
Day DayOfMinuteNo(int64_t minute) { return DayOfMinute(minute); }

}  // namespace

absl::StatusOr<std::unique_ptr<Maintenance>> Maintenance::Prepare(Database& database, NodeLedger& ledger,
                                                                  const MaintenanceOptions& options) {
  std::unique_ptr<Maintenance> maintenance(new Maintenance(database, ledger, options));
  RETURN_IF_ERROR(maintenance->PrepareStatements());
  ASSIGN_OR_RETURN(maintenance->tries_, TrieMerger::Prepare(database, options.damage));
  ASSIGN_OR_RETURN(maintenance->events_, EventMerger::Prepare(database, ledger, options.damage));
  ASSIGN_OR_RETURN(maintenance->processes_, ProcessMerger::Prepare(database, ledger, options.damage));
  ASSIGN_OR_RETURN(maintenance->nodes_, NodeExpiry::Prepare(database, ledger));
  ASSIGN_OR_RETURN(maintenance->log_, WriteAheadLog::Prepare(database, options.bytes_max));
  ASSIGN_OR_RETURN(maintenance->closed_before_,
                   database.QueryInt("SELECT value FROM watermark WHERE name = 'closed_before'"));
  return maintenance;
}

absl::Status Maintenance::PrepareStatements() {
  struct {
    Statement* statement;
    std::string_view sql;
  } const wanted[] = {
      {&next_open_minute_, "SELECT min(minute) FROM sample_chunk WHERE minute >= ?"},
      {&raw_of_minute_,
       "SELECT machine, type, id, (SELECT aggregation FROM sample_type WHERE sample_type.id = type) FROM sample_chunk "
       "WHERE minute = ? ORDER BY machine, type"},
      {&read_raw_, "SELECT raw_bytes, columns FROM sample_chunk WHERE id = ?"},
      {&put_sum_, kInsertMinuteSum},
      {&set_watermark_, "UPDATE watermark SET value = ?2 WHERE name = CAST(?1 AS TEXT)"},
      {&raise_watermark_, "UPDATE watermark SET value = max(value, ?2) WHERE name = CAST(?1 AS TEXT)"},
      {&oldest_raw_, "SELECT min(minute) FROM sample_chunk WHERE minute >= ?"},
      {&oldest_sum_, "SELECT min(minute) FROM minute_sum WHERE minute >= ?"},
      {&oldest_events_, "SELECT min(slot) FROM event_chunk WHERE slot >= ?"},
      {&delete_sessions_, "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE last_seen < ? LIMIT ?)"},
      {&oldest_day_, "SELECT min(day) FROM trie_chunk"},
      {&next_day_, "SELECT min(day) FROM trie_chunk WHERE day > ?"},
      {&day_has_raw_, "SELECT min(minute) FROM sample_chunk WHERE minute >= ? AND minute < ?"},
      {&day_has_sums_, "SELECT min(minute) FROM minute_sum WHERE minute >= ? AND minute < ?"},
      {&delete_day_, "DELETE FROM trie_chunk WHERE day = ?"},
      {&delete_shares_, "DELETE FROM trie_share WHERE day = ?"},
      {&delete_ledger_, "DELETE FROM node_day WHERE day < ?"},
      {&keep_texts_in_ledger_,
       "UPDATE node_day SET definition_bytes = min(definition_bytes, coalesce((SELECT sum(length(text) + ?2) FROM "
       "string WHERE last_day = node_day.day AND string.machine = node_day.machine), 0)) WHERE day < ?1"},
  };
  for (const auto& [statement, sql] : wanted) {
    ASSIGN_OR_RETURN(*statement, database_.Prepare(sql));
  }
  DamageReports* const damage = options_.damage;
  ASSIGN_OR_RETURN(expiring_raw_,
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kSamples, "minute", DayOfMinuteNo}, damage));
  ASSIGN_OR_RETURN(expiring_sums_,
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kSums, "minute", DayOfMinuteNo}, damage));
  ASSIGN_OR_RETURN(expiring_events_,
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kEvents, "slot", DayOfSlot}, damage));
  IgnoreDamagedRows();
  return absl::OkStatus();
}

// Rows that cannot be deleted must not hold up what is removed in order of time. Statements keep what is bound.
void Maintenance::IgnoreDamagedRows() {
  oldest_raw_.Bind(expiring_raw_->cleared_before());
  oldest_sum_.Bind(expiring_sums_->cleared_before());
  oldest_events_.Bind(expiring_events_->cleared_before());
}

// For aggregates, which are NULL if the query finds no rows.
absl::StatusOr<int64_t> Maintenance::QueryOr(Statement& statement, int64_t otherwise) {
  ASSIGN_OR_RETURN(bool row, statement.Step());
  if (!row) return otherwise;
  const int64_t value = statement.IsNull(0) ? otherwise : statement.Int(0);
  statement.Reset();
  return value;
}

absl::Status Maintenance::Run(UnixNs now, Removed* removed) {
  using Task = MaintenanceTask;
  absl::Status status;
  const auto run = [&](Task task, absl::FunctionRef<absl::Status()> work) {
    // Another connection holds the lock: each task would wait for it.
    if (!absl::IsUnavailable(status)) status.Update(RunTask(task, now, work));
  };
  const auto before = [now](int64_t age_ns) { return UnixNs{now.value - age_ns}; };
  run(Task::kShortenLog, [&] { return log_->Shorten(now); });
  run(Task::kCloseMinutes, [&] { return CloseMinutes(MinuteOf(before(kMinuteOpenNs))); });
  run(Task::kExpireSamples, [&] { return RemoveRaw(MinuteOf(before(options_.raw_age_ns))); });
  run(Task::kExpireSums, [&] { return RemoveSums(MinuteOf(before(options_.sum_age_ns))); });
  run(Task::kExpireEvents, [&] { return RemoveEvents(SlotOf(before(options_.event_age_ns))); });
  run(Task::kExpireSessions, [&] { return RemoveSessions(now, removed); });
  run(Task::kExpireBySize, [&] { return ExpireBySize(now, removed); });
  run(Task::kRemoveDays, [&] { return RemoveEmptyDays(removed); });
  run(Task::kRemoveDefinitions, [&] { return RemoveUnusedDefinitions(removed); });
  run(Task::kReturnPages, [&] { return GiveBackPages(); });
  run(Task::kMergeEvents, [&] { return events_->Run(now); });
  run(Task::kMergeTries, [&] { return tries_->Run(now); });
  run(Task::kMergeProcesses, [&] { return processes_->Run(now); });
  return status;
}

absl::Status Maintenance::RunTask(MaintenanceTask task, UnixNs now, absl::FunctionRef<absl::Status()> run) {
  std::optional<MetDamage>& met_damage = met_damage_[static_cast<size_t>(task)];
  if (met_damage && now >= met_damage->at && now.value - met_damage->at.value < kRetryNs) return met_damage->why;
  met_damage.reset();
  absl::Status status = run();
  if (!status.ok()) ledger_.Rollback();
  if (absl::IsDataLoss(status)) met_damage = MetDamage{now, status};
  if (options_.failures != nullptr) options_.failures->Note(task, status);
  return status;
}

// Writes a minute's sums and moves the watermark `closed_before` past the minute in one transaction. So a reader sees
// either the minute's raw columns or its sums.
absl::Status Maintenance::CloseMinutes(int64_t before) {
  int64_t samples = 0;
  for (int i = 0; i < kMinutesPerRun && samples < kSamplesPerRun && closed_before_ < before; ++i) {
    ASSIGN_OR_RETURN(int64_t minute, QueryOr(next_open_minute_.Bind(closed_before_), kNever));
    if (minute >= before) {
      // No minute before `before` needs sums. Moves the watermark only if it is at least two minutes behind, because it
      // need not follow the clock closely.
      if (closed_before_ + 1 >= before) return absl::OkStatus();
      minute = before - 1;
    }
    absl::flat_hash_set<int64_t> unreadable;
    absl::Status closed = CloseMinute(minute, unreadable, &samples);
    if (absl::IsDataLoss(closed) && options_.damage != nullptr) {
      ledger_.Rollback();
      RETURN_IF_ERROR(FindUnreadable(minute, &unreadable));
      if (!unreadable.empty()) closed = CloseMinute(minute, unreadable, &samples);
    }
    RETURN_IF_ERROR(closed);
    closed_before_ = minute + 1;
  }
  return absl::OkStatus();
}

absl::Status Maintenance::CloseMinute(int64_t minute, const absl::flat_hash_set<int64_t>& unreadable,
                                      int64_t* samples) {
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  SumTable sums;
  MinuteKey key{minute, 0, 0};
  SampleColumns columns;
  const absl::Cleanup reset = [this] { raw_of_minute_.Reset(); };
  raw_of_minute_.Bind(minute);
  for (bool row = true; row;) {
    ASSIGN_OR_RETURN(row, raw_of_minute_.Step());
    const MinuteKey next =
        row ? MinuteKey{minute, raw_of_minute_.Int(0), static_cast<int>(ReadType(raw_of_minute_.Int(1)).value)} : key;
    if (!sums.empty() && (!row || next != key)) {
      ASSIGN_OR_RETURN(const size_t inserted, InsertMinuteSum(put_sum_, key, sums.Sorted()));
      sums.Start(Aggregation::kSum);
      ledger_.AddData(DayOfMinute(minute), key.machine, NodeLedger::BytesOf(inserted));
    }
    if (!row || unreadable.contains(raw_of_minute_.Int(2))) continue;
    if (sums.empty()) sums.Start(ReadAggregation(raw_of_minute_.IsNull(3) ? 0 : raw_of_minute_.Int(3)));
    key = next;
    ASSIGN_OR_RETURN(const bool intact, ReadRaw(raw_of_minute_.Int(2), &columns));
    if (!intact) continue;
    sums.Add(columns);
    *samples += static_cast<int64_t>(columns.times.size());
  }
  RETURN_IF_ERROR(SetWatermark("closed_before", minute + 1));
  return ledger_.Commit(transaction);
}

// Returns false if the row was removed, or if its columns do not decode. Returns DataLoss if SQLite cannot read it.
absl::StatusOr<bool> Maintenance::ReadRaw(int64_t id, SampleColumns* columns) {
  const absl::Cleanup reset = [this] { read_raw_.Reset(); };
  ASSIGN_OR_RETURN(const bool row, read_raw_.Bind(id).Step());
  if (!row) return false;
  const absl::StatusOr<std::string> raw = UnpackColumns(read_raw_.Bytes(1), read_raw_.Int(0));
  const absl::Status decoded = read_raw_.InFile(raw.ok() ? DecodeSamples(*raw, columns) : raw.status());
  if (absl::IsDataLoss(decoded) && options_.damage != nullptr) {
    options_.damage->Report({PieceKind::kSamples, id}, decoded);
    return false;
  }
  RETURN_IF_ERROR(decoded);
  return true;
}

// Finds and reports the rows on damaged pages. They must not hold up the minute, and all later ones, for ever. But if
// the list of the rows cannot be read, the minute stays open: its rows may be intact. Does not run in a transaction,
// because SQLite would refuse all further changes in it.
absl::Status Maintenance::FindUnreadable(int64_t minute, absl::flat_hash_set<int64_t>* unreadable) {
  const absl::Cleanup reset = [this] { raw_of_minute_.Reset(); };
  raw_of_minute_.Bind(minute);
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, raw_of_minute_.Step());
    if (!row) return absl::OkStatus();
    const int64_t id = raw_of_minute_.Int(2);
    const absl::Status read = read_raw_.Bind(id).Step().status();
    read_raw_.Reset();
    if (absl::IsDataLoss(read)) {
      options_.damage->Report({PieceKind::kSamples, id}, read);
      unreadable->insert(id);
    } else {
      RETURN_IF_ERROR(read);
    }
  }
}

absl::Status Maintenance::SetWatermark(std::string_view name, int64_t value) {
  return set_watermark_.Bind(name, value).Run();
}

absl::Status Maintenance::RaiseWatermark(std::string_view name, int64_t value) {
  return raise_watermark_.Bind(name, value).Run();
}

// Looks at all sessions, so it runs seldom. An index over last_seen would change with every batch.
absl::Status Maintenance::RemoveSessions(UnixNs now, Removed* removed) {
  const int64_t since = now.value - sessions_looked_at_ns_;
  if (since >= 0 && since < kSessionsEveryNs) return absl::OkStatus();
  // Sessions are removed a day later than the data: chunks may be ten minutes ahead of their session's last batch.
  const int64_t unseen_since = now.value - std::max(options_.sum_age_ns, options_.event_age_ns) - kNsPerDay;
  RETURN_IF_ERROR(delete_sessions_.Bind(unseen_since, kRowsPerRun).Run());
  if (database_.changes() == 0) {
    sessions_looked_at_ns_ = now.value;
    return absl::OkStatus();
  }
  removed->sessions = true;
  removed->sessions_before_ns = unseen_since;
  return absl::OkStatus();
}

// Readers read raw columns from the watermark on, so that they see a minute as a whole or not at all.
absl::Status Maintenance::RemoveRaw(int64_t before) {
  before = std::min(before, closed_before_);
  ASSIGN_OR_RETURN(const int64_t oldest, expiring_raw_->Oldest());
  if (oldest >= before) return absl::OkStatus();
  const absl::Status removed = expiring_raw_->Delete(before, kRowsPerRun, [&]() -> absl::Status {
    RETURN_IF_ERROR(RaiseWatermark("raw_from", before));
    // The newest chunk may be among those that are deleted.
    ASSIGN_OR_RETURN(const int64_t samples_end, database_.QueryInt(kSamplesEnd));
    return SetWatermark("samples_end", samples_end);
  });
  IgnoreDamagedRows();
  return removed;
}

absl::Status Maintenance::RemoveSums(int64_t before) {
  ASSIGN_OR_RETURN(const int64_t oldest, expiring_sums_->Oldest());
  if (oldest >= before) return absl::OkStatus();
  const absl::Status removed = expiring_sums_->Delete(before, kRowsPerRun, [] { return absl::OkStatus(); });
  IgnoreDamagedRows();
  return removed;
}

absl::Status Maintenance::RemoveEvents(Slot before) {
  ASSIGN_OR_RETURN(const int64_t oldest, expiring_events_->Oldest());
  if (oldest >= before.value) return absl::OkStatus();
  RETURN_IF_ERROR(expiring_events_->Delete(before.value, kRowsPerRun, [] { return absl::OkStatus(); }));
  IgnoreDamagedRows();
  ASSIGN_OR_RETURN(const int64_t left, QueryOr(oldest_events_, before.value));
  if (DayOfSlot(oldest) < DayOfSlot(left)) days_removed_ = true;
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> Maintenance::UsedBytes() {
  ASSIGN_OR_RETURN(int64_t pages, database_.QueryInt("PRAGMA page_count"));
  ASSIGN_OR_RETURN(int64_t free_pages, database_.QueryInt("PRAGMA freelist_count"));
  ASSIGN_OR_RETURN(int64_t page_bytes, database_.QueryInt("PRAGMA page_size"));
  return static_cast<uint64_t>((pages - free_pages) * page_bytes);
}

// First removes data of nodes over their share, so that a node that fills the store loses its own data.
absl::Status Maintenance::ExpireBySize(UnixNs now, Removed* removed) {
  ASSIGN_OR_RETURN(const uint64_t file_bytes, UsedBytes());
  const uint64_t used = file_bytes + log_->charged_bytes();
  if (used <= options_.bytes_max) {
    stalled_at_bytes_ = 0;
    nodes_->Rest();
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(int64_t oldest_raw, QueryOr(oldest_raw_, kNever));
  ASSIGN_OR_RETURN(int64_t oldest_sum, QueryOr(oldest_sum_, kNever));
  ASSIGN_OR_RETURN(const int64_t oldest_slot, QueryOr(oldest_events_, kNever));
  const int64_t oldest_events = oldest_slot == kNever ? kNever : oldest_slot * kSlotMinutes;
  const int64_t oldest = std::min({oldest_raw, oldest_sum, oldest_events, closed_before_});
  const NodeExpiry::Target target{.now = now,
                                  .bytes_max = options_.bytes_max,
                                  .bytes_over = used - options_.bytes_max,
                                  .oldest_minute = oldest,
                                  .closed_before = closed_before_};
  RETURN_IF_ERROR(nodes_->Run(target, &removed->over_share));
  if (removed->over_share.rows != 0 || nodes_->has_more()) return absl::OkStatus();
  return RemoveHour(oldest, file_bytes, removed);
}

absl::Status Maintenance::RemoveHour(int64_t oldest, uint64_t used, Removed* removed) {
  // Samples may always use half of the limit, whatever the definitions need that cannot be removed with them.
  const uint64_t kept_max = std::max(options_.bytes_max, nodes_->kept_definition_bytes() + options_.bytes_max / 2);
  if (used + log_->charged_bytes() <= kept_max || used == stalled_at_bytes_) {
    removed->size_stalled = true;
    return absl::OkStatus();
  }
  if (oldest >= closed_before_) return absl::OkStatus();  // the remaining data are still being written
  const int64_t before = std::min(oldest + kSizeStepMinutes, closed_before_);
  RETURN_IF_ERROR(RemoveRaw(before));
  RETURN_IF_ERROR(RemoveSums(before));
  RETURN_IF_ERROR(RemoveEvents(SlotOf(UnixNs{before * kNsPerMinute})));
  ASSIGN_OR_RETURN(const uint64_t left, UsedBytes());
  stalled_at_bytes_ = left < used ? 0 : left;
  return absl::OkStatus();
}

// Removes a day's trie with the last of its data. The oldest data are removed first, so this looks only at the oldest
// day until that day is empty. A list of all days would be a walk over all pieces of tries: millions of rows.
absl::Status Maintenance::RemoveEmptyDays(Removed* removed) {
  absl::Status status;
  for (int64_t after = std::numeric_limits<int64_t>::min();;) {
    ASSIGN_OR_RETURN(const int64_t day, QueryOr(next_day_.Bind(after), kNever));
    if (day == kNever) return status;
    after = day;
    const int64_t first = day * kMinutesPerDay, end = first + kMinutesPerDay;
    if (end > closed_before_) return status;
    const int64_t first_raw = std::max(first, expiring_raw_->cleared_before()),
                  first_sum = std::max(first, expiring_sums_->cleared_before());
    ASSIGN_OR_RETURN(int64_t raw, QueryOr(day_has_raw_.Bind(first_raw, end), kNever));
    ASSIGN_OR_RETURN(int64_t sums, QueryOr(day_has_sums_.Bind(first_sum, end), kNever));
    if (raw != kNever || sums != kNever) return status;
    RETURN_IF_ERROR(delete_shares_.Bind(day).Run());
    const absl::Status deleted = delete_day_.Bind(day).Run();
    status.Update(deleted);
    if (absl::IsDataLoss(deleted)) continue;  // a damaged trie must not keep the tries of later days
    RETURN_IF_ERROR(deleted);
    removed->days.push_back(Day{static_cast<int32_t>(day)});
    removed->definitions = true;
    removed->before = Day{static_cast<int32_t>(day) + 1};
    days_removed_ = true;
  }
}

// Rows contain the latest day that may refer to them: rows with a day before the oldest kept day are unused. Removes a
// bounded number of rows per call, until a call finds no more.
absl::Status Maintenance::RemoveUnusedDefinitions(Removed* removed) {
  if (!days_removed_) return absl::OkStatus();
  ASSIGN_OR_RETURN(int64_t day, QueryOr(oldest_day_, DayOfMinute(closed_before_).value));
  absl::Status status;
  // Events refer only to strings.
  const absl::StatusOr<int64_t> slot = QueryOr(oldest_events_, kNever);
  status.Update(slot.status());
  int64_t strings_before = day;
  if (!slot.ok()) strings_before = std::numeric_limits<int32_t>::min();
  if (slot.ok() && *slot != kNever) strings_before = std::min<int64_t>(day, DayOfSlot(*slot).value);
  struct {
    std::string_view sql;
    int64_t before;
  } const unused[] = {
      {"DELETE FROM process_chunk WHERE id IN (SELECT id FROM process_chunk WHERE last_slot < ? LIMIT ?)",
       day * kSlotsPerDay},
      {"DELETE FROM executable WHERE id IN (SELECT id FROM executable WHERE last_day < ? LIMIT ?)", day},
      {"DELETE FROM string WHERE id IN (SELECT id FROM string WHERE last_day < ? LIMIT ?)", strings_before},
      {"DELETE FROM sample_type WHERE id IN (SELECT id FROM sample_type WHERE last_day < ? LIMIT ?)", day},
  };
  days_removed_ = false;
  removed->before = std::max(removed->before, Day{static_cast<int32_t>(day)});
  removed->strings_before = Day{static_cast<int32_t>(strings_before)};
  for (const auto& [sql, before] : unused) {
    ASSIGN_OR_RETURN(Statement statement, database_.Prepare(sql));
    const absl::Status deleted = statement.Bind(before, kRowsPerRun).Run();
    status.Update(deleted);
    if (!deleted.ok() || database_.changes() == 0) continue;  // after an error, tries again with the next removed day
    removed->definitions = true;
    days_removed_ = true;
  }
  if (days_removed_ || !status.ok()) return status;
  RETURN_IF_ERROR(delete_ledger_.Bind(strings_before).Run());
  // If events stay longer than samples, their texts are the only definitions that are left of these days.
  RETURN_IF_ERROR(keep_texts_in_ledger_.Bind(day, NodeLedger::kRowBytes).Run());
  // Sessions stay longer than their samples.
  return database_.Execute("DELETE FROM machine WHERE id NOT IN (SELECT machine FROM session)");
}

absl::Status Maintenance::GiveBackPages() {
  ASSIGN_OR_RETURN(int64_t free_pages, database_.QueryInt("PRAGMA freelist_count"));
  if (free_pages < kPagesPerRun) return absl::OkStatus();  // the next commits will use them
  ASSIGN_OR_RETURN(Statement vacuum, database_.Prepare("PRAGMA incremental_vacuum(512)"));
  static_assert(kPagesPerRun == 512);
  return vacuum.Run();
}

}  // namespace tributary::store
