#include "reducer/sqlite/node_expiry.h"

#include <algorithm>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "base/status.h"
#include "reducer/sqlite/maintenance.h"
#include "reducer/sqlite/session_columns.h"
#include "reducer/sqlite/session_table.h"
#include "reducer/store/store_times.h"

namespace tributary::store {
namespace {

constexpr int kDaysPerRun = 64, kUnproductiveDaysPerRun = 16;  // a day costs a transaction, or 3,000 look-ups
constexpr int64_t kTodaysDefinitionsKept = 4 << 20;
constexpr int64_t kForEver = -1;
constexpr size_t kExhaustedMax = 1u << 16;

}  // namespace

absl::StatusOr<std::unique_ptr<NodeExpiry>> NodeExpiry::Prepare(Database& database, NodeLedger& ledger) {
  std::unique_ptr<NodeExpiry> expiry(new NodeExpiry(database, ledger));
  const std::string delete_sessions =
      "DELETE FROM session WHERE rowid IN (SELECT rowid FROM session WHERE machine = ?1 AND last_seen < ?2 AND rowid < "
      "(SELECT max(rowid) FROM session WHERE machine = ?1) LIMIT ?3) RETURNING " +
      std::string(kSessionBytes);
  struct {
    Statement* statement;
    std::string_view sql;
  } const wanted[] = {
      {&expiry->all_, "SELECT day, machine, data_bytes, definition_bytes FROM node_day"},
      {&expiry->definitions_since_, "SELECT coalesce(sum(definition_bytes), 0) FROM node_day WHERE day >= ?"},
      {&expiry->days_of_,
       "SELECT day, data_bytes, definition_bytes FROM node_day WHERE machine = ? AND data_bytes + definition_bytes > 0 "
       "ORDER BY day"},
      {&expiry->keep_samples_end_, kKeepSamplesEnd},
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
      {&expiry->delete_sessions_, delete_sessions},
  };
  for (const auto& [statement, sql] : wanted) {
    ASSIGN_OR_RETURN(*statement, database.Prepare(sql));
  }
  return expiry;
}

absl::Status NodeExpiry::FindNodes(const Target& target) {
  absl::flat_hash_map<int64_t, int64_t> bytes_of;
  const Day today = DayOfMinute(target.closed_before), oldest = DayOfMinute(target.oldest_minute);
  texts_of_no_node_ = 0;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, all_.Step());
    if (!row) break;
    const Day day{static_cast<int32_t>(all_.Int(0))};
    const int64_t machine = all_.Int(1), data = all_.Int(2), definitions = all_.Int(3);
    // Machine 0: texts of earlier releases, which belong to no node.
    if (machine == 0 && day > oldest && day < today) texts_of_no_node_ += definitions;
    if (machine != 0) bytes_of[machine] += data + definitions;
  }
  nodes_.clear();
  listed_at_ns_ = target.now.value;
  listed_over_ = static_cast<int64_t>(target.bytes_over);
  listed_freed_ = listed_pending_ = 0;
  machine_ = 0;  // late data may have come to the minutes that were passed
  if (bytes_of.empty()) return absl::OkStatus();
  share_ = static_cast<int64_t>(target.bytes_max / 8 * 7 / bytes_of.size());
  for (const auto& [machine, bytes] : bytes_of) {
    if (bytes > share_) nodes_.push_back({machine, bytes - share_});
  }
  std::sort(nodes_.begin(), nodes_.end(), HasLess);
  return absl::OkStatus();
}

// The nodes that must give up data before the shard is within its limit.
void NodeExpiry::LimitNewDefinitions(const Target& target) {
  absl::flat_hash_set<int64_t> overfilling;
  auto left = static_cast<int64_t>(target.bytes_over);
  if (target.bytes_over <= target.bytes_max / 8) left = 0;
  for (auto node = nodes_.rbegin(); node != nodes_.rend() && left > 0; ++node) {
    overfilling.insert(node->machine);
    left -= node->bytes_over;
  }
  ledger_.SetOverfilling(std::move(overfilling));
}

void NodeExpiry::Rest() {
  nodes_.clear();
  ledger_.SetOverfilling({});
}

absl::Status NodeExpiry::FindKeptMax(const Target& target) {
  definitions_since_.Bind(DayOfMinute(target.closed_before).value);
  ASSIGN_OR_RETURN(const bool row, definitions_since_.Step());
  const int64_t definitions = texts_of_no_node_ + (row ? definitions_since_.Int(0) : 0);
  definitions_since_.Reset();
  kept_max_ = std::max(target.bytes_max, static_cast<uint64_t>(definitions) + target.bytes_max / 2);
  return absl::OkStatus();
}

int64_t NodeExpiry::Wanted(const Node& node, const Target& target, const Removed& removed) const {
  const int64_t wanted = StillWanted(target, removed), over_two_shares = node.bytes_over - share_;
  if (wanted <= over_two_shares) return wanted;
  const auto kept = static_cast<int64_t>(kept_max_ - target.bytes_max);
  return std::max(over_two_shares, std::min(node.bytes_over, wanted - kept));
}

// The node may have stored more since the list was made. It then still comes before smaller ones.
absl::Status NodeExpiry::ListLastAgain() {
  Node node{nodes_.back().machine, -share_};
  nodes_.pop_back();
  days_of_.Bind(node.machine);
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, days_of_.Step());
    if (!found) break;
    node.bytes_over += days_of_.Int(1) + days_of_.Int(2);
  }
  if (node.bytes_over > 0) nodes_.insert(std::upper_bound(nodes_.begin(), nodes_.end(), node, HasLess), node);
  return absl::OkStatus();
}

absl::Status NodeExpiry::Run(const Target& target, Removed* removed) {
  absl::Status status = RemoveFromNodes(target, removed);
  if (!status.ok()) machine_ = 0;  // the transaction was undone, so nothing of the day was removed
  return status;
}

absl::Status NodeExpiry::RemoveFromNodes(const Target& target, Removed* removed) {
  const int64_t age_ns = target.now.value - listed_at_ns_;
  if (nodes_.empty() || (listed_pending_ > 0 && (age_ns < 0 || age_ns >= kNsPerMinute))) {
    RETURN_IF_ERROR(FindNodes(target));
    LimitNewDefinitions(target);
  }
  RETURN_IF_ERROR(FindKeptMax(target));
  const auto factor = static_cast<int64_t>(target.bytes_over / (target.bytes_max / 16 + 1));
  rows_max_ = kRowsPerRun * std::clamp<int64_t>(factor, 1, kRowsFactorMax);
  absl::Status damage;
  int unproductive = 0;
  for (int days = 0; days < kDaysPerRun && unproductive < kUnproductiveDaysPerRun && !nodes_.empty() &&
                     removed->rows < rows_max_ && StillWanted(target, *removed) > 0;
       ++days) {
    Node& node = nodes_.back();
    wanted_bytes_ = Wanted(node, target, *removed);
    if (wanted_bytes_ <= 0) {  // the other nodes are smaller
      nodes_.clear();
      break;
    }
    ASSIGN_OR_RETURN(const std::optional<NodeDay> day, OldestDay(node, target));
    if (!day) {
      nodes_.pop_back();
      continue;
    }
    const absl::StatusOr<int64_t> freed = RemoveFrom(node, *day, target, removed);
    if (absl::IsDataLoss(freed.status())) {
      // Leaves this day out. Otherwise, it would stop the removal of all other data.
      ledger_.Rollback();
      machine_ = 0;
      SetExhausted(node.machine, day->day, kForEver);
      damage.Update(freed.status());
      continue;
    }
    RETURN_IF_ERROR(freed.status());
    if (*freed == 0) ++unproductive;
    removed->bytes += *freed;
    listed_freed_ += *freed;
    node.bytes_over -= *freed;
    if (node.bytes_over > 0) continue;
    RETURN_IF_ERROR(ListLastAgain());
  }
  return damage;
}

void NodeExpiry::SetExhausted(int64_t machine, Day day, int64_t bytes) {
  if (exhausted_.size() >= kExhaustedMax) exhausted_.clear();
  exhausted_[{machine, day.value}] = bytes;
}

absl::StatusOr<std::optional<NodeExpiry::NodeDay>> NodeExpiry::OldestDay(const Node& node, const Target& target) {
  const Day open_day = DayOfMinute(target.closed_before);
  days_of_.Bind(node.machine);
  for (;;) {
    ASSIGN_OR_RETURN(const bool found, days_of_.Step());
    if (!found) return std::nullopt;
    const NodeDay day{Day{static_cast<int32_t>(days_of_.Int(0))}, days_of_.Int(1) + days_of_.Int(2), days_of_.Int(2)};
    const auto exhausted = exhausted_.find({node.machine, day.day.value});
    if (exhausted != exhausted_.end() && exhausted->second == kForEver) continue;
    if (exhausted != exhausted_.end() && exhausted->second == day.bytes) {
      // What is left of the samples of this day is of minutes that are not closed.
      if (day.day == open_day) listed_pending_ += std::min(day.bytes - day.definition_bytes, node.bytes_over);
      continue;
    }
    days_of_.Reset();
    return day;
  }
}

absl::StatusOr<int64_t> NodeExpiry::RemoveFrom(const Node& node, const NodeDay& day, const Target& target,
                                               Removed* removed) {
  const int64_t first = int64_t{day.day.value} * kMinutesPerDay,
                end = std::min(first + kMinutesPerDay, target.closed_before);
  if (machine_ != node.machine || day_ != day.day) {
    machine_ = node.machine;
    day_ = day.day;
    minute_ = first;
  }
  freed_ = 0;
  const bool from_first = minute_ == first;
  const int64_t rows = removed->rows;
  ASSIGN_OR_RETURN(Transaction transaction, Transaction::Begin(database_));
  RETURN_IF_ERROR(keep_samples_end_.Run());
  RETURN_IF_ERROR(RemoveTimes(node, day.day, end, removed));
  // Samples of the last minutes stay, and refer to definitions of today.
  const bool is_over = first + kMinutesPerDay <= target.closed_before;
  const bool may_remove = is_over || day.definition_bytes > kTodaysDefinitionsKept;
  if (may_remove && freed_ < wanted_bytes_ && removed->rows < rows_max_) {
    RETURN_IF_ERROR(RemoveDefinitions(node, day.day, target.now, removed));
  }
  RETURN_IF_ERROR(ledger_.Commit(transaction));
  if (removed->rows == rows && !from_first) {
    minute_ = first;  // late data may have come to earlier minutes
  } else if (removed->rows == rows) {
    // What is left belongs to the tries and to texts that other nodes use, or cannot be removed yet.
    SetExhausted(node.machine, day.day, day.bytes);
  }
  return freed_;
}

absl::Status NodeExpiry::RemoveTimes(const Node& node, Day day, int64_t end, Removed* removed) {
  const int64_t machine = node.machine;
  for (; minute_ < end && freed_ < wanted_bytes_ && removed->rows < rows_max_; ++minute_) {
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
absl::Status NodeExpiry::RemoveDefinitions(const Node& node, Day day, UnixNs now, Removed* removed) {
  int64_t bytes = 0;
  const int64_t rows = removed->rows;
  for (Statement* statement : {&delete_executables_, &delete_strings_}) {
    if (removed->rows >= rows_max_) break;
    statement->Bind(day.value, node.machine, rows_max_ - removed->rows);
    RETURN_IF_ERROR(Delete(*statement, &bytes, removed));
  }
  if (removed->rows != rows) removed->machines.push_back(node.machine);
  if (removed->rows < rows_max_) {
    const int64_t end_ns = int64_t{day.value + 1} * kNsPerDay - kFutureMaxNs;
    delete_sessions_.Bind(node.machine, std::min(end_ns, now.value - SessionTable::kKeptForNs),
                          rows_max_ - removed->rows);
    RETURN_IF_ERROR(Delete(delete_sessions_, &bytes, removed));
  }
  if (bytes != 0) ledger_.RemoveDefinitions(day, node.machine, bytes);
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
