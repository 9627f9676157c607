#include "reducer/sqlite/node_expiry.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "base/status.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

constexpr int64_t kListedForNs = kNsPerMinute;
constexpr int kDaysPerRun = 64;  // without a row to remove

}  // namespace

absl::StatusOr<std::unique_ptr<NodeExpiry>> NodeExpiry::Prepare(Database& database, NodeLedger& ledger) {
  std::unique_ptr<NodeExpiry> expiry(new NodeExpiry(database, ledger));
  const std::string keep_samples_end =
      "UPDATE watermark SET value = (" + std::string(kSamplesEnd) + ") WHERE name = 'samples_end'";
  struct {
    Statement* statement;
    std::string_view sql;
  } const wanted[] = {
      {&expiry->all_, "SELECT day, machine, data_bytes, definition_bytes FROM node_day"},
      {&expiry->days_of_,
       "SELECT day, data_bytes, definition_bytes FROM node_day WHERE machine = ? AND data_bytes + definition_bytes > 0 "
       "ORDER BY day LIMIT 1"},
      {&expiry->keep_samples_end_, keep_samples_end},
      {&expiry->delete_raw_, "DELETE FROM sample_chunk WHERE minute = ? AND machine = ? RETURNING length(columns)"},
      {&expiry->delete_sums_, "DELETE FROM minute_sum WHERE minute = ? AND machine = ? RETURNING length(columns)"},
      {&expiry->delete_events_, "DELETE FROM event_chunk WHERE slot = ? AND machine = ? RETURNING length(columns)"},
      {&expiry->delete_processes_,
       "DELETE FROM process_chunk WHERE last_slot = ? AND machine = ? RETURNING length(columns)"},
      {&expiry->delete_executables_,
       "DELETE FROM executable WHERE id IN (SELECT id FROM executable WHERE last_day = ? AND machine = ? LIMIT ?) "
       "RETURNING 2 * length(bytes)"},
      {&expiry->delete_strings_,
       "DELETE FROM string WHERE id IN (SELECT id FROM string WHERE last_day = ? AND machine = ? LIMIT ?) "
       "RETURNING length(text)"},
      {&expiry->forget_day_, "DELETE FROM node_day WHERE day = ? AND machine = ?"},
      {&expiry->forget_definitions_, "UPDATE node_day SET definition_bytes = 0 WHERE day = ? AND machine = ?"},
  };
  for (const auto& [statement, sql] : wanted) {
    ASSIGN_OR_RETURN(*statement, database.Prepare(sql));
  }
  return expiry;
}

absl::Status NodeExpiry::FindNodes(const Target& target) {
  absl::flat_hash_map<int64_t, int64_t> bytes_of;
  const Day today = DayOfMinute(target.closed_before), oldest = DayOfMinute(target.oldest_minute);
  int64_t kept = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all_.Step());
    if (!row) break;
    const Day day{static_cast<int32_t>(all_.Int(0))};
    const int64_t machine = all_.Int(1), data = all_.Int(2), definitions = all_.Int(3);
    // Machine 0: texts of earlier releases, which belong to no node.
    if (day >= today || (machine == 0 && day > oldest)) kept += definitions;
    if (machine != 0) bytes_of[machine] += data + definitions;
  }
  kept_definition_bytes_ = static_cast<uint64_t>(kept);
  nodes_.clear();
  nodes_as_of_ns_ = target.now.value;
  if (bytes_of.empty()) return absl::OkStatus();
  const auto share = static_cast<int64_t>(target.bytes_max / 8 * 7 / bytes_of.size());
  for (const auto& [machine, bytes] : bytes_of) {
    if (bytes > share) nodes_.push_back({machine, bytes - share});
  }
  std::sort(nodes_.begin(), nodes_.end(), [](const Node& a, const Node& b) {
    return std::pair(a.bytes_over, a.machine) < std::pair(b.bytes_over, b.machine);
  });
  return absl::OkStatus();
}

absl::Status NodeExpiry::Run(const Target& target, Removed* removed) {
  const int64_t age_ns = target.now.value - nodes_as_of_ns_;
  if (nodes_.empty() || age_ns < 0 || age_ns >= kListedForNs) RETURN_IF_ERROR(FindNodes(target));
  for (int i = 0; i < kDaysPerRun && !nodes_.empty() && removed->rows == 0; ++i) {
    Node& node = nodes_.back();
    ASSIGN_OR_RETURN(const int64_t freed, RemoveOldest(node, target, removed));
    node.bytes_over -= freed;
    if (freed == 0 || node.bytes_over <= 0) nodes_.pop_back();
  }
  return absl::OkStatus();
}

absl::StatusOr<int64_t> NodeExpiry::RemoveOldest(const Node& node, const Target& target, Removed* removed) {
  ASSIGN_OR_RETURN(const bool found, days_of_.Bind(node.machine).Step());
  if (!found) return 0;
  const Day day{static_cast<int32_t>(days_of_.Int(0))};
  const int64_t data = days_of_.Int(1), definitions = days_of_.Int(2);
  days_of_.Reset();
  const int64_t first = int64_t{day.value} * kMinutesPerDay,
                end = std::min(first + kMinutesPerDay, target.closed_before);
  const int64_t wanted = std::min(node.bytes_over, static_cast<int64_t>(target.bytes_over));
  if (machine_ != node.machine || day_ != day) {
    machine_ = node.machine;
    day_ = day;
    minute_ = first;
  }
  freed_ = 0;
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  RETURN_IF_ERROR(keep_samples_end_.Run());
  RETURN_IF_ERROR(RemoveTimes(node.machine, day, end, wanted, removed));
  if (freed_ < wanted && removed->rows < kRowsPerRun) RETURN_IF_ERROR(RemoveDefinitions(node.machine, day, removed));
  if (removed->rows == 0) {
    // What is left belongs to the tries, or cannot be removed yet.
    const bool is_over = first + kMinutesPerDay <= target.closed_before;
    freed_ = is_over ? data + definitions : definitions;
    RETURN_IF_ERROR((is_over ? forget_day_ : forget_definitions_).Bind(day.value, node.machine).Run());
  }
  RETURN_IF_ERROR(ledger_.Commit(transaction));
  return freed_;
}

absl::Status NodeExpiry::RemoveTimes(int64_t machine, Day day, int64_t end, int64_t bytes_max, Removed* removed) {
  for (; minute_ < end && freed_ < bytes_max && removed->rows < kRowsPerRun; ++minute_) {
    int64_t data = 0, processes = 0;
    RETURN_IF_ERROR(Delete(delete_raw_.Bind(minute_, machine), &data, removed));
    RETURN_IF_ERROR(Delete(delete_sums_.Bind(minute_, machine), &data, removed));
    if ((minute_ + 1) % kSlotMinutes == 0) {
      const int64_t slot = minute_ / kSlotMinutes;
      RETURN_IF_ERROR(Delete(delete_events_.Bind(slot, machine), &data, removed));
      RETURN_IF_ERROR(Delete(delete_processes_.Bind(slot, machine), &processes, removed));
    }
    if (data != 0) ledger_.AddData(day, machine, -data);
    if (processes != 0) ledger_.RemoveDefinitions(day, machine, processes);
    freed_ += data + processes;
  }
  return absl::OkStatus();
}

// Executables come before texts, which contain their paths.
absl::Status NodeExpiry::RemoveDefinitions(int64_t machine, Day day, Removed* removed) {
  int64_t bytes = 0;
  const int64_t rows = removed->rows;
  for (Statement* statement : {&delete_executables_, &delete_strings_}) {
    if (removed->rows >= kRowsPerRun) break;
    statement->Bind(day.value, machine, kRowsPerRun - removed->rows);
    RETURN_IF_ERROR(Delete(*statement, &bytes, removed));
  }
  if (removed->rows == rows) return absl::OkStatus();
  removed->machines.push_back(machine);
  ledger_.RemoveDefinitions(day, machine, bytes);
  freed_ += bytes;
  return absl::OkStatus();
}

absl::Status NodeExpiry::Delete(Statement& statement, int64_t* bytes, Removed* removed) {
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, statement.Step());
    if (!row) return absl::OkStatus();
    *bytes += NodeLedger::BytesOf(static_cast<uint64_t>(statement.Int(0)));
    ++removed->rows;
  }
}

}  // namespace tributary::store
