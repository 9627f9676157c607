#include "reducer/sqlite/node_ledger.h"

#include "base/status.h"

namespace tributary::store {
namespace {

constexpr size_t kQuotasMax = 1u << 16;         // in memory: about 3 MiB
constexpr uint64_t kOverfillingShareOfDay = 8;  // an eighth

}  // namespace

absl::StatusOr<std::unique_ptr<NodeLedger>> NodeLedger::Prepare(Database& database, uint64_t definition_bytes_per_day) {
  std::unique_ptr<NodeLedger> ledger(new NodeLedger(definition_bytes_per_day));
  ASSIGN_OR_RETURN(
      ledger->find_,
      database.Prepare("SELECT charged_bytes, received_bytes FROM node_day WHERE day = ? AND machine = ?"));
  // No number becomes negative: data of earlier releases have no row, and sessions are charged on the day on which they
  // begin.
  ASSIGN_OR_RETURN(
      ledger->add_,
      database.Prepare("INSERT INTO node_day (day, machine, data_bytes, definition_bytes, charged_bytes, "
                       "received_bytes) VALUES (?1, ?2, max(?3, 0), max(?4, 0), ?5, ?6) ON CONFLICT (day, machine) DO "
                       "UPDATE SET data_bytes = max(data_bytes + ?3, 0), definition_bytes = max(definition_bytes + ?4, "
                       "0), charged_bytes = charged_bytes + ?5, received_bytes = received_bytes + ?6"));
  return ledger;
}

absl::StatusOr<const NodeLedger::Quota*> NodeLedger::QuotaOf(int64_t machine) {
  const auto known = quotas_.find(machine);
  if (known != quotas_.end() && known->second.day == today_) return &known->second;
  if (quotas_.size() >= kQuotasMax) quotas_.clear();
  Quota quota{.day = today_};
  ASSIGN_OR_RETURN(const bool found, find_.Bind(today_.value, machine).Step());
  if (found) {
    quota.charged = find_.Int(0);
    quota.received = find_.Int(1);
    find_.Reset();
  }
  return &quotas_.insert_or_assign(machine, quota).first->second;
}

absl::StatusOr<bool> NodeLedger::HasRoom(int64_t machine, uint64_t bytes) {
  ASSIGN_OR_RETURN(const Quota* quota, QuotaOf(machine));
  Row change;
  if (const auto it = changes_.find(Key{today_.value, machine}); it != changes_.end()) change = it->second;
  const auto received = static_cast<uint64_t>(quota->received + change.received);
  const auto charged = static_cast<uint64_t>(quota->charged + change.charged);
  if (overfilling_.contains(machine)) return charged + bytes <= definition_bytes_per_day_ / kOverfillingShareOfDay;
  return charged + bytes <= definition_bytes_per_day_ + kBytesPerReceived * received;
}

void NodeLedger::AddDefinitions(int64_t machine, uint64_t bytes) {
  Row& change = Change(today_, machine);
  change.definitions += Signed(bytes);
  change.charged += Signed(bytes);
}

void NodeLedger::MoveDefinitions(Day from, Day to, int64_t machine, int64_t bytes) {
  Change(from, machine).definitions -= bytes;
  Change(to, machine).definitions += bytes;
}

void NodeLedger::AddTrieNodes(Day day, int64_t machine, uint64_t nodes) {
  if (nodes != 0) trie_nodes_[Key{day.value, machine}] += nodes;
}

void NodeLedger::AddTriePiece(Day day, uint64_t bytes) {
  uint64_t all = 0;
  for (const auto& [key, nodes] : trie_nodes_) all += key.first == day.value ? nodes : 0;
  for (const auto& [key, nodes] : trie_nodes_) {
    if (key.first == day.value) AddDefinitions(key.second, bytes * nodes / all);
  }
}

absl::Status NodeLedger::Write() {
  for (const auto& [key, row] : changes_) {
    const auto& [day, machine] = key;
    RETURN_IF_ERROR(add_.Bind(day, machine, row.data, row.definitions, row.charged, row.received).Run());
  }
  return absl::OkStatus();
}

absl::Status NodeLedger::Commit(Transaction& transaction) {
  RETURN_IF_ERROR(Write());
  RETURN_IF_ERROR(transaction.Commit());
  MarkCommitted();
  return absl::OkStatus();
}

void NodeLedger::MarkCommitted() {
  for (const auto& [key, row] : changes_) {
    const auto quota = quotas_.find(key.second);
    if (quota == quotas_.end() || quota->second.day.value != key.first) continue;
    quota->second.charged += row.charged;
    quota->second.received += row.received;
  }
  Rollback();
}

void NodeLedger::Rollback() {
  changes_.clear();
  trie_nodes_.clear();
}

}  // namespace tributary::store
