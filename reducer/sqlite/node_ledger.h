#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Counts the bytes that each node's data take in a shard's file (table node_day). Limits the definitions that a node
// may store in a day: without a limit, a few kilobytes from the network can become a gigabyte of strings and processes.
//
// A node may store `definition_bytes_per_day`, plus kBytesPerReceived bytes for each byte that it sends. An honest node
// sends most definitions once and stores them about as often, so even a node with thousands of new processes a minute
// stays below its limit. While a node makes the shard far larger than its limit, it may store only an eighth of
// `definition_bytes_per_day`. The limit is soft: only the strings and executables of the current transaction count
// before its end.
//
// Changes are collected for one transaction: call Write in the transaction, then MarkCommitted or Rollback. Costs one
// upsert of a small row per node, day and transaction. Use it on the writer's thread.
class NodeLedger {
 public:
  static constexpr uint64_t kBytesPerReceived = 2;
  // The bytes of a row besides its text or columns: its header, its numbers, its entries in indexes, and unused space.
  static constexpr int64_t kRowBytes = 56;
  static constexpr int64_t BytesOf(uint64_t columns_bytes) { return Signed(columns_bytes) + kRowBytes; }

  // `database` must outlive the object.
  static absl::StatusOr<std::unique_ptr<NodeLedger>> Prepare(Database& database, uint64_t definition_bytes_per_day);

  // Sets the day that definitions and received bytes count for.
  void SetToday(Day today) { today_ = today; }

  void AddReceived(int64_t machine, uint64_t bytes) { Change(today_, machine).received += Signed(bytes); }
  // Return true if the machine may store further definitions today.
  absl::StatusOr<bool> HasRoom(int64_t machine) { return HasRoom(machine, 1); }
  absl::StatusOr<bool> HasRoom(int64_t machine, uint64_t bytes);
  void AddDefinitions(int64_t machine, uint64_t bytes);
  // Samples, sums or events of `day`. `bytes` is negative if they were removed.
  void AddData(Day day, int64_t machine, int64_t bytes) { Change(day, machine).data += bytes; }
  // Counts a stored definition for the day on which it was last used, so that it counts as long as it is stored. Does
  // not count against a limit.
  void MoveDefinitions(Day from, Day to, int64_t machine, int64_t bytes);
  // Subtracts removed definitions. They still count against the limit of the day.
  void RemoveDefinitions(Day day, int64_t machine, int64_t bytes) { Change(day, machine).definitions -= bytes; }

  // Sets the machines that make the shard far larger than its limit.
  void SetOverfilling(absl::flat_hash_set<int64_t> machines) { overfilling_ = std::move(machines); }

  // A piece of a trie has nodes of several machines. First pass the number of new nodes of each machine, then the bytes
  // of the piece, which the machines share.
  void AddTrieNodes(Day day, int64_t machine, uint64_t nodes);
  void AddTriePiece(Day day, uint64_t bytes);

  absl::Status Write();
  void MarkCommitted();
  void Rollback();
  // Writes the changes, commits the transaction, and marks the changes as committed. After an error, the caller must
  // call Rollback.
  absl::Status Commit(Transaction& transaction);

 private:
  struct Row {
    int64_t data = 0, definitions = 0, charged = 0, received = 0;
  };
  struct Quota {
    Day day;
    int64_t charged = 0, received = 0;
  };
  using Key = std::pair<int32_t, int64_t>;  // day, machine

  explicit NodeLedger(uint64_t definition_bytes_per_day) : definition_bytes_per_day_(definition_bytes_per_day) {}
  static constexpr int64_t Signed(uint64_t bytes) { return static_cast<int64_t>(bytes); }
  Row& Change(Day day, int64_t machine) { return changes_[Key{day.value, machine}]; }
  absl::StatusOr<const Quota*> QuotaOf(int64_t machine);

  const uint64_t definition_bytes_per_day_;
  Statement find_, add_;
  Day today_{0};
  absl::flat_hash_map<Key, Row> changes_;          // of the current transaction
  absl::flat_hash_map<Key, uint64_t> trie_nodes_;  // of the current transaction
  absl::flat_hash_map<int64_t, Quota> quotas_;     // by machine, as in the file
  absl::flat_hash_set<int64_t> overfilling_;
};

}  // namespace tributary::store
