#include "reducer/sqlite/maintenance.h"

#include <algorithm>
#include <limits>

#include "absl/cleanup/cleanup.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/column_codec.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/sample_type_table.h"

namespace tributary::store {
namespace {

// After this many samples a call closes no further minute: about 0.1 s of work.
constexpr int64_t kSamplesPerRun = 500'000;

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
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kSamples, "minute", DayOfMinute}, damage));
  ASSIGN_OR_RETURN(expiring_sums_,
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kSums, "minute", DayOfMinute}, damage));
  ASSIGN_OR_RETURN(expiring_events_,
                   ExpiringRows::Prepare(database_, ledger_, {PieceKind::kEvents, "slot", DayOfSlot}, damage));
  IgnoreDamagedRows();
  return absl::OkStatus();
}

// Rows that cannot be deleted must not delay the removal of later data. A statement keeps its bound values.
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
  bool locked = false;  // by another connection: each task would wait for it
  const auto run = [&](Task task, absl::FunctionRef<absl::Status()> work) {
    if (locked) return;
    const absl::Status outcome = RunTask(task, now, work);
    locked = absl::IsUnavailable(outcome);
    status.Update(outcome);
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
  MinuteSums sums;
  MinuteKey key{minute, 0, 0};
  SampleColumns columns;
  const absl::Cleanup reset = [this] { raw_of_minute_.Reset(); };
  raw_of_minute_.Bind(minute);
  for (bool row = true; row;) {
    ASSIGN_OR_RETURN(row, raw_of_minute_.Step());
    const MinuteKey next =
        row ? MinuteKey{minute, raw_of_minute_.Int(0), static_cast<int>(ReadType(raw_of_minute_.Int(1)).value)} : key;
    if (!sums.empty() && (!row || next != key)) {
      ASSIGN_OR_RETURN(const size_t inserted, InsertMinuteSum(put_sum_, key, sums));
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

}  // namespace tributary::store
