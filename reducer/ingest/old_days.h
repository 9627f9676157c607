#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/string_view.h"
#include "profile/row_batch.h"
#include "reducer/ingest/old_day_turns.h"
#include "reducer/store/age_rules.h"
#include "reducer/store/store.h"

namespace tributary::ingest {

// Limits how many old days each node may use, and how many all nodes of a shard may use together.
//
// A day is old for a batch if samples or events of this day are older than single samples may be. The store writer must
// load the day's trie for them, describe their processes anew, and write sums for each of their minutes. So a node with
// old samples costs much more than others. A node counts as using a day until it has sent nothing of this day for an
// hour. A node that was away for a week sends its days one after another, so the days that it has finished make room
// for the next ones.
//
// All nodes of the shard together may use the days before yesterday only in turns (OldDayTurns).
//
// Costs a loop over the batch's times, which takes about a nanosecond per sample. Memory is used only for nodes that
// use old days: about 30 MB for 65,536 nodes with ids of the maximum length. Use it on one thread.
class OldDays {
 public:
  struct Options {
    store::AgeRules::Ages ages;
    uint32_t node_days_max = 4;  // 0: no limit
    // If there are more nodes with old days, the one that has sent old data least recently is forgotten, and may use
    // `node_days_max` days anew. If further nodes waited instead, a peer with many ids could make them wait for ever.
    size_t nodes_max = 65'536;
    int64_t turn_ns = 2 * kNsPerMinute;  // 0: days need no turn
  };
  explicit OldDays(const Options& options) : options_(options), turns_(options.turn_ns) {}

  // Returns 0 if the batch may be stored, and counts its days as used from now on. Otherwise returns how many ns it
  // must wait. A batch with more than `node_days_max` old days may be stored while its node uses no old day.
  int64_t Take(std::string_view node_id, const RowBatch& batch, UnixNs unix_now, MonotonicNs now);

  size_t nodes() const { return nodes_.size(); }

 private:
  struct Use {
    store::Day day;
    MonotonicNs last;
  };
  struct Node {
    std::string id;
    std::vector<Use> uses;
    MonotonicNs last_use;
  };
  struct Days {
    std::vector<store::Day> old;               // of its node
    std::vector<store::Day> before_yesterday;  // of samples: events need no trie
  };

  Days DaysOf(const RowBatch& batch, UnixNs unix_now) const;
  int64_t WaitOfNode(Node& node, const std::vector<store::Day>& days, MonotonicNs now) const;
  Node& FindOrAdd(std::string_view node_id, MonotonicNs now);

  const Options options_;
  OldDayTurns turns_;
  std::list<Node> recent_;  // most recently used first
  absl::flat_hash_map<absl::string_view, std::list<Node>::iterator> nodes_;
};

}  // namespace tributary::ingest
