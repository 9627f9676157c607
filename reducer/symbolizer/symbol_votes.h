#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "base/clock.h"
#include "profile/executable_id.h"
#include "reducer/symbolizer/table_notes.h"
#include "symbols/symbol_digest.h"

namespace tributary {

// Finds out whether other nodes have the same symbol table as the node that sent it. The reducer asks one node after
// the other for the digest of its table, until two nodes agree. Two nodes count only if they are independent of each
// other (SymbolWitness), because one machine can invent any number of node ids. So of one peer, only one node is asked.
// At most kNodesMax nodes are asked about a table. The digests are kept only in memory: after a restart, nodes are
// asked again. A reducer has one SymbolVotes. Any thread; calls hold a lock only for a short time.
class SymbolVotes {
 public:
  struct Options {
    int64_t answer_ns = 300 * kNsPerSecond;  // without an answer, another node may be asked
  };
  static constexpr size_t kNodesMax = 5;
  // Tables whose questions are remembered. Each takes about 500 bytes, and 3 KB with the longest node ids.
  static constexpr size_t kTablesMax = 16'384;

  // The stored table. `nodes`: have this table.
  struct Stored {
    SymbolDigest digest;
    std::string version;  // of the collector that made it
    std::vector<SymbolWitness> nodes;
  };
  struct Vote {
    SymbolWitness by;
    std::string version;
    SymbolDigest digest;
  };
  enum class Verdict {
    kUnasked,    // the node was not asked, or has answered already
    kAgreed,     // at least two independent nodes have the stored table
    kOnlyOne,    // the node has the stored table, but no independent node is known to have it
    kNoVerdict,  // the digests differ, but other collectors or other sources of names may be the reason
    kConflict,   // the digests differ: two files have this build-id, or a node is hostile
    kOutvoted,   // two independent nodes have the same table, and it is not the stored one
  };
  struct Outcome {
    Verdict verdict = Verdict::kUnasked;
    // The nodes whose table differs from that of two others, although it is comparable.
    std::vector<std::string> outvoted;
  };

  SymbolVotes(Options options, const Clock& clock) : options_(options), clock_(clock) {}

  enum class Question { kAsk, kNo, kTooMany };
  // Returns kAsk if the node should be asked for the digest of its table of `id`. If so, the node counts as asked.
  // kTooMany: kTablesMax tables are remembered.
  Question Ask(const ExecutableId& id, const SymbolWitness& node);
  Outcome Take(const ExecutableId& id, const Stored& stored, const Vote& vote);
  void TakeNone(const ExecutableId& id, const std::string& node_id);  // the node has no table

  // Returns true if the node and another one have the same table, and it is not the stored one. The table should then
  // be requested from the node.
  bool IsOfMajority(const ExecutableId& id, const std::string& node_id) const;
  // The nodes that gave this digest, which is not that of the stored table. Empty unless at least two are independent.
  std::vector<SymbolWitness> Majority(const ExecutableId& id, const SymbolDigest& digest) const;
  // Removes the vote of a node that has sent a table whose digest differs from its vote.
  void Discard(const ExecutableId& id, const std::string& node_id);
  void Forget(const ExecutableId& id);  // the table is settled, or was deleted

 private:
  struct Table {
    std::vector<SymbolWitness> asked;
    std::vector<Vote> votes;
    int64_t answer_by = 0;  // monotonic ns; 0: no question is open
    SymbolDigest majority;
    bool has_majority = false;  // at least two independent votes are for `majority`, which is not the stored table
  };
  bool HasRoom(int64_t now);

  const Options options_;
  const Clock& clock_;
  mutable std::mutex mutex_;
  absl::flat_hash_map<ExecutableId, Table> tables_;  // guarded by mutex_
};

}  // namespace tributary
