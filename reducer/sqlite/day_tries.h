#pragma once

#include <cstddef>
#include <list>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "reducer/sqlite/day_trie.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/sqlite/trie_pieces.h"
#include "reducer/sqlite/trie_shares.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/trie_share.h"

namespace tributary::store {

// The tries that a shard's writer has in memory, one for each day of which it has stored new stacks lately. Loads a
// day's trie from the file when a stack first needs it, and writes the nodes that a transaction has added.
//
// Loading a full trie (8 million nodes) takes seconds, so the tries that are used again and again must stay. Keeps the
// kAlwaysKept tries that were used last, whatever their size: samples of more days do not arrive at the same time
// (ingest::OldDayTurns). Keeps further tries while all of them together have at most a quarter more nodes than one day
// may have. A trie that was not used for an hour is removed, too.
//
// Memory: 24 bytes a node (DayTrie). With the default limit, 250 MB for any number of small tries, and 800 MB if the
// tries of four days are full. The transaction that loads one more may exceed the first figure by a trie.
//
// Use it on the writer's thread.
class DayTries {
 public:
  static constexpr size_t kAlwaysKept = kDaysAtOnce;

  // All borrowed objects must outlive the object.
  static absl::StatusOr<std::unique_ptr<DayTries>> Prepare(Database& database, NodeLedger& ledger, TrieLimits limits,
                                                           const Clock& clock, Metrics& metrics);

  // Call it in a transaction. The pointer is valid until the next call of Find or MarkCommitted. Returns DataLoss if a
  // piece of the trie is damaged: see TakeDamaged.
  absl::StatusOr<DayTrie*> Find(Day day);
  // Returns the day of the damaged trie that Find has met since the last call.
  std::optional<Day> TakeDamaged() { return std::exchange(damaged_, std::nullopt); }

  absl::Status Write();  // call it before the transaction commits
  void MarkCommitted();
  void Rollback();
  // Removes a trie that was deleted or repaired in the file.
  void Forget(Day day);

  size_t size() const { return tries_.size(); }
  size_t nodes() const;

 private:
  struct Kept {
    Kept(Day day, TrieLimits limits) : trie(day, limits) {}
    DayTrie trie;
    bool is_used = true;    // since the last Write
    bool is_last = false;   // this transaction is the last one that has it in memory
    MonotonicNs last_used;  // a Write after a use
  };

  DayTries(NodeLedger& ledger, TrieLimits limits, const Clock& clock, Metrics& metrics);
  absl::Status Load(DayTrie& trie);
  absl::Status MakeRoom();
  absl::Status Write(Kept& kept);

  NodeLedger& ledger_;
  const TrieLimits limits_;
  const size_t nodes_max_;  // of all tries together, if there are more than kAlwaysKept
  const Clock& clock_;
  Counter& loads_;
  Statement put_;
  std::optional<TriePieces> pieces_;
  std::optional<TrieShareTable> shares_;
  std::list<Kept> tries_;         // most recently used first
  std::vector<Day> written_out_;  // removed in this transaction, with nodes that it has added
  std::optional<Day> damaged_;
};

}  // namespace tributary::store
