#include <algorithm>
#include <limits>

#include "base/status.h"
#include "reducer/sqlite/maintenance.h"

// The tasks of Maintenance that remove data: by age, by size, and what no data refer to any more.

namespace tributary::store {
namespace {

constexpr int64_t kSizeStepMinutes = 60;
constexpr int64_t kSessionsEveryNs = 10 * kNsPerMinute;

}  // namespace

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
    return database_.Execute(kKeepSamplesEnd);
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
  // A table with a damaged index must not keep the other ones.
  absl::Status damage;
  const auto oldest_of = [&](Statement& statement) -> absl::StatusOr<int64_t> {
    const absl::StatusOr<int64_t> oldest = QueryOr(statement, kNever);
    if (!absl::IsDataLoss(oldest.status())) return oldest;
    damage.Update(oldest.status());
    return kNever;
  };
  ASSIGN_OR_RETURN(const int64_t oldest_raw, oldest_of(oldest_raw_));
  ASSIGN_OR_RETURN(const int64_t oldest_sum, oldest_of(oldest_sum_));
  ASSIGN_OR_RETURN(const int64_t oldest_slot, oldest_of(oldest_events_));
  const int64_t oldest_events = oldest_slot == kNever ? kNever : oldest_slot * kSlotMinutes;
  const int64_t oldest = std::min({oldest_raw, oldest_sum, oldest_events, closed_before_});
  const NodeExpiry::Target target{.now = now,
                                  .bytes_max = options_.bytes_max,
                                  .bytes_over = used - options_.bytes_max,
                                  .oldest_minute = oldest,
                                  .closed_before = closed_before_};
  RETURN_IF_ERROR(nodes_->Run(target, &removed->over_share));
  if (nodes_->is_enough()) return damage;
  damage.Update(RemoveHour(oldest, nodes_->kept_max(), removed));
  return damage;
}

absl::Status Maintenance::RemoveHour(int64_t oldest, uint64_t kept_max, Removed* removed) {
  ASSIGN_OR_RETURN(const uint64_t used, UsedBytes());
  if (used + log_->charged_bytes() <= kept_max || used == stalled_at_bytes_) {
    removed->size_stalled = true;
    return absl::OkStatus();
  }
  if (oldest >= closed_before_) return absl::OkStatus();  // the remaining data are still being written
  const int64_t before = std::min(oldest + kSizeStepMinutes, closed_before_);
  absl::Status status = RemoveRaw(before);
  status.Update(RemoveSums(before));
  status.Update(RemoveEvents(SlotOf(UnixNs{before * kNsPerMinute})));
  ASSIGN_OR_RETURN(const uint64_t left, UsedBytes());
  stalled_at_bytes_ = left < used ? 0 : left;
  return status;
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
    if (absl::IsDataLoss(deleted)) {
      // A damaged trie must not keep the tries and definitions of later days.
      if (day > undeletable_to_) days_removed_ = true;
      undeletable_to_ = std::max(undeletable_to_, day);
      continue;
    }
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
  ASSIGN_OR_RETURN(int64_t day, QueryOr(next_day_.Bind(undeletable_to_), DayOfMinute(closed_before_).value));
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
  return database_.Execute(
      "DELETE FROM machine WHERE id NOT IN (SELECT machine FROM session) AND id NOT IN (SELECT machine FROM loss)");
}

absl::Status Maintenance::GiveBackPages() {
  ASSIGN_OR_RETURN(int64_t free_pages, database_.QueryInt("PRAGMA freelist_count"));
  if (free_pages < kPagesPerRun) return absl::OkStatus();  // the next commits will use them
  ASSIGN_OR_RETURN(Statement vacuum, database_.Prepare("PRAGMA incremental_vacuum(512)"));
  static_assert(kPagesPerRun == 512);
  return vacuum.Run();
}

}  // namespace tributary::store
