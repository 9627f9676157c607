#include "reducer/sqlite/process_numbers.h"

#include <algorithm>

#include "base/status.h"
#include "reducer/sqlite/column_packing.h"
#include "reducer/sqlite/process_columns.h"
#include "reducer/sqlite/row_ids.h"

namespace tributary::store {
namespace {

constexpr NumberKind kKinds[] = {NumberKind::kProcess, NumberKind::kThread};
constexpr std::string_view kWatermarks[] = {"next_process", "next_thread"};

absl::StatusOr<int64_t> ReadWatermark(Database& database, NumberKind kind) {
  return database.QueryInt(kind == NumberKind::kProcess ? "SELECT value FROM watermark WHERE name = 'next_process'"
                                                        : "SELECT value FROM watermark WHERE name = 'next_thread'");
}

// Pieces of processes that are looked at to find out whether numbers have started again at 1. Then the oldest pieces
// have processes from before.
constexpr int kOldestPieces = 256;

// Returns the smallest numbers from `next` on that a piece has, or 0. Reads all pieces if one of the oldest has any.
absl::StatusOr<std::array<uint32_t, kNumberKinds>> FindNumbersBeforeRestart(
    Database& database, const std::array<uint32_t, kNumberKinds>& next) {
  std::array<uint32_t, kNumberKinds> found{};
  const auto look_at = [&](NumberKind kind, uint32_t no) {
    uint32_t& smallest = found[static_cast<size_t>(kind)];
    if (no >= next[static_cast<size_t>(kind)] && (smallest == 0 || no < smallest)) smallest = no;
  };
  ASSIGN_OR_RETURN(Statement list, database.Prepare("SELECT raw_bytes, columns FROM process_chunk ORDER BY id"));
  StoredProcesses piece;
  for (int pieces = 0;; ++pieces) {
    if (pieces >= kOldestPieces && found == std::array<uint32_t, kNumberKinds>{}) return found;
    const absl::StatusOr<bool> row = list.Step();
    if (absl::IsDataLoss(row.status())) return found;
    RETURN_IF_ERROR(row.status());
    if (!*row) return found;
    const absl::StatusOr<std::string> raw = UnpackColumns(list.Bytes(1), list.Int(0));
    if (!raw.ok() || !DecodeProcesses(*raw, &piece).ok()) continue;  // readers skip it, too
    for (const StoredProcess& process : piece.processes) look_at(NumberKind::kProcess, process.no);
    for (const StoredThread& thread : piece.threads) look_at(NumberKind::kThread, thread.no);
  }
}

// The first day with samples, sums or processes. NULL: none.
constexpr std::string_view kOldestDay =
    "SELECT min(minute) FROM (SELECT min(minute) AS minute FROM sample_chunk UNION ALL SELECT min(minute) FROM "
    "minute_sum UNION ALL SELECT min(last_slot) * ? FROM process_chunk)";
constexpr std::string_view kNewestDay =
    "SELECT max(minute) FROM (SELECT max(minute) AS minute FROM sample_chunk UNION ALL SELECT max(minute) FROM "
    "minute_sum UNION ALL SELECT max(last_slot) * ? FROM process_chunk)";

}  // namespace

absl::StatusOr<ProcessNumbers> ProcessNumbers::Prepare(Database& database, uint32_t age_max) {
  ProcessNumbers numbers;
  numbers.age_max_ = age_max;
  ASSIGN_OR_RETURN(numbers.put_day_,
                   database.Prepare("INSERT OR REPLACE INTO number_day (day, process, thread) VALUES (?, ?, ?)"));
  ASSIGN_OR_RETURN(numbers.delete_days_, database.Prepare("DELETE FROM number_day WHERE day < ?"));
  ASSIGN_OR_RETURN(numbers.set_watermark_,
                   database.Prepare("UPDATE watermark SET value = ?2 WHERE name = CAST(?1 AS TEXT)"));
  ASSIGN_OR_RETURN(numbers.oldest_day_, database.Prepare(kOldestDay));
  for (const NumberKind kind : kKinds) {
    ASSIGN_OR_RETURN(const int64_t next, ReadWatermark(database, kind));
    numbers.next_[Index(kind)] = ReadRowId(next).value_or(1);
  }
  numbers.swept_ = numbers.next_;
  ASSIGN_OR_RETURN(Statement days, database.Prepare("SELECT day, process, thread FROM number_day"));
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, days.Step());
    if (!row) break;
    DayRow& day = numbers.days_[Day{static_cast<int32_t>(days.Int(0))}];
    for (const NumberKind kind : kKinds) {
      const int64_t oldest = days.Int(1 + static_cast<int>(kind));
      // A damaged number protects all numbers.
      day.oldest[Index(kind)] = oldest == 0 ? 0 : ReadRowId(oldest).value_or(numbers.next_[Index(kind)]);
    }
  }
  numbers.FindOldest();
  return numbers;
}

uint64_t ProcessNumbers::Free(NumberKind kind) const {
  const uint32_t oldest = oldest_[Index(kind)];
  return oldest == 0 ? kRowIdMax : (uint64_t{1} << 32) - Age(kind, oldest);
}

uint32_t ProcessNumbers::New(NumberKind kind) {
  if (Free(kind) == 0) {
    is_starved_ = true;
    return 0;
  }
  uint32_t& next = next_[Index(kind)];
  const uint32_t no = next++;
  if (next == 0) next = 1;
  return no;
}

bool ProcessNumbers::HasFree() {
  for (const NumberKind kind : kKinds) {
    if (Free(kind) <= kReserved) is_starved_ = true;
  }
  return !is_starved_;
}

void ProcessNumbers::Use(NumberKind kind, Day day, uint32_t no) {
  if (no == 0) return;
  DayRow& row = days_[day];
  uint32_t& oldest = row.oldest[Index(kind)];
  const uint32_t before = oldest;
  UpdateOldest(kind, no, &oldest);
  if (oldest == before) return;
  row.changed = has_changed_days_ = true;
  UpdateOldest(kind, no, &oldest_[Index(kind)]);
}

void ProcessNumbers::FindOldest() {
  oldest_ = {};
  for (const auto& [day, row] : days_) {
    for (const NumberKind kind : kKinds) UpdateOldest(kind, row.oldest[Index(kind)], &oldest_[Index(kind)]);
  }
}

// A sweep is due twice per `age_max` numbers, so that a number in memory never has the age of a much newer one.
bool ProcessNumbers::TakeSweep() {
  bool is_due = false;
  for (const NumberKind kind : kKinds) is_due |= next_[Index(kind)] - swept_[Index(kind)] >= age_max_ / 2;
  if (is_due) swept_ = next_;
  return is_due;
}

absl::StatusOr<std::optional<Day>> ProcessNumbers::Release(Day today) {
  if (released_on_ == today && !is_starved_) return std::nullopt;
  const absl::StatusOr<int64_t> oldest = OldestDay();
  if (absl::IsDataLoss(oldest.status())) return std::nullopt;  // a damaged index: nothing is known to be removed
  RETURN_IF_ERROR(oldest.status());
  released_on_ = today;
  is_starved_ = false;
  if (days_.empty() || days_.begin()->first.value >= *oldest) return std::nullopt;
  RETURN_IF_ERROR(delete_days_.Bind(*oldest).Run());
  std::erase_if(days_, [&oldest](const auto& day) { return day.first.value < *oldest; });
  FindOldest();
  return Day{static_cast<int32_t>(std::min<int64_t>(*oldest, INT32_MAX))};
}

absl::StatusOr<int64_t> ProcessNumbers::OldestDay() {
  ASSIGN_OR_RETURN([[maybe_unused]] const bool found, oldest_day_.Bind(kSlotMinutes).Step());
  const int64_t day = oldest_day_.IsNull(0) ? INT64_MAX : DayOfMinute(oldest_day_.Int(0)).value;
  oldest_day_.Reset();
  return day;
}

absl::Status ProcessNumbers::Write() {
  for (const NumberKind kind : kKinds) {
    RETURN_IF_ERROR(set_watermark_.Bind(kWatermarks[Index(kind)], next_[Index(kind)]).Run());
  }
  if (!has_changed_days_) return absl::OkStatus();
  for (auto& [day, row] : days_) {
    if (!row.changed) continue;
    RETURN_IF_ERROR(put_day_.Bind(day.value, row.oldest[0], row.oldest[1]).Run());
    row.changed = false;
  }
  has_changed_days_ = false;
  return absl::OkStatus();
}

// Keeps what the transaction has recorded: it protects more numbers than needed, which does no harm.
void ProcessNumbers::Rollback() {
  for (auto& [day, row] : days_) row.changed = true;
  has_changed_days_ = true;
}

absl::Status ProtectEarlierNumbers(Database& database) {
  ASSIGN_OR_RETURN(Statement newest, database.Prepare(kNewestDay));
  ASSIGN_OR_RETURN([[maybe_unused]] const bool found, newest.Bind(kSlotMinutes).Step());
  if (newest.IsNull(0)) return absl::OkStatus();
  const Day day = DayOfMinute(newest.Int(0));
  std::array<uint32_t, kNumberKinds> next{};
  std::array<bool, kNumberKinds> unused{};
  for (const NumberKind kind : kKinds) {
    ASSIGN_OR_RETURN(const int64_t stored, ReadWatermark(database, kind));
    next[static_cast<size_t>(kind)] = ReadRowId(stored).value_or(1);
    unused[static_cast<size_t>(kind)] = stored == 1;
  }
  ASSIGN_OR_RETURN(auto oldest, FindNumbersBeforeRestart(database, next));
  for (size_t i = 0; i < kNumberKinds; ++i) {
    if (oldest[i] == 0 && !unused[i]) oldest[i] = 1;
  }
  ASSIGN_OR_RETURN(Statement put, database.Prepare("INSERT INTO number_day (day, process, thread) VALUES (?, ?, ?)"));
  return put.Bind(day.value, oldest[0], oldest[1]).Run();
}

}  // namespace tributary::store
