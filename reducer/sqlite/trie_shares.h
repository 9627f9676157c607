#pragma once

#include <cstdint>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"
#include "reducer/store/trie_share.h"

namespace tributary::store {

// Counts the nodes that each machine has added to one day's trie. Use it on the writer's thread.
class TrieShares {
 public:
  explicit TrieShares(TrieLimits limits) : limits_(limits) {}

  // Returns true if the machine may add one more node to the trie, which has `used` nodes.
  bool HasRoom(int64_t machine, size_t used) const {
    return used < limits_.nodes_max && Added(machine) < TrieShare(limits_, used);
  }
  void Add(int64_t machine);  // one node
  uint32_t Added(int64_t machine) const;

  void MarkCommitted();
  void Rollback();  // to the last MarkCommitted

 private:
  friend class TrieShareTable;
  struct Share {
    uint32_t added = 0, committed = 0;
    uint32_t written = 0, writing = 0;  // in the file: of committed transactions, and of this transaction (0: not)
  };

  TrieLimits limits_;
  absl::flat_hash_map<int64_t, Share> shares_;  // key: the machine's id. Each entry has added a node
  std::vector<int64_t> changed_;                // machines that have added nodes in this transaction
};

// The counts in the file (table trie_share), so that a restart does not give a machine a new share. A count is written
// when it has grown by a 64th of the guaranteed share: so most commits write none, and a restart or a kill forgets at
// most this number of nodes of a machine.
class TrieShareTable {
 public:
  // `database` must outlive the object.
  static absl::StatusOr<TrieShareTable> Prepare(Database& database);

  absl::Status Load(Day day, TrieShares* shares);
  // Writes the counts of the day that have grown enough. If `all` is true, writes all counts that have grown: the
  // writer is about to remove the trie from its memory. Call it in the transaction that writes the nodes.
  absl::Status Write(Day day, bool all, TrieShares* shares);

 private:
  TrieShareTable() = default;
  Statement find_, put_;
};

}  // namespace tributary::store
