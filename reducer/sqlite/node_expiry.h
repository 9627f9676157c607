#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Removes data of nodes that take more than their share of a shard that is above its size limit. The share is seven
// eighths of the limit, divided by the number of nodes: the ledger does not contain all bytes that SQLite uses. The
// node with the most bytes comes first, and its oldest day. Of a day, it removes samples, sums, events and processes in
// order of time, then the executables, texts and sessions that only this node has used. Data of the last minutes stay,
// so the definitions of today stay too, unless they take more than 4 MiB. The sessions of the last hour stay, and the
// newest session of a node.
//
// Tries stay until the day ends for all nodes, because nodes share them. They count for their nodes as long as they
// stay. Of what a node has below twice its share, it gives up nothing while definitions are the cause (kept_max). While
// the shard is more than an eighth above its limit, the nodes that must give up data first may store few new
// definitions (NodeLedger::SetOverfilling).
//
// A list of the nodes over their share is made from a scan of node_day: one row of about 30 bytes for each node and
// day. It is used until each of these nodes had its turn, or for a minute if the last minutes of the nodes that had
// their turn are enough. Removing the oldest data of a node costs a few index look-ups for each minute of a day. Use it
// outside of transactions, on the writer's thread.
class NodeExpiry {
 public:
  // Rows that a run removes. If the shard is far above its limit, up to kRowsFactorMax times as many.
  static constexpr int64_t kRowsPerRun = 4000, kRowsFactorMax = 8;

  // `database` and `ledger` must outlive the object.
  static absl::StatusOr<std::unique_ptr<NodeExpiry>> Prepare(Database& database, NodeLedger& ledger);

  struct Target {
    UnixNs now;
    uint64_t bytes_max = 0;     // limit of the shard
    uint64_t bytes_over = 0;    // the shard's size above the limit
    int64_t oldest_minute = 0;  // with samples, sums or events
    int64_t closed_before = 0;  // removes only data of earlier minutes
  };
  struct Removed {
    int64_t rows = 0;
    int64_t bytes = 0;              // as the ledger counts them
    std::vector<int64_t> machines;  // whose texts or executables were removed: their ids are not valid any more
  };
  // Removes about as many bytes as the shard is above its limit, within the limit of rows. Removes fewer if that is not
  // possible within the shares. `removed` is valid even after an error. DataLoss: a day of a node has a damaged page,
  // and is left out from now on.
  absl::Status Run(const Target& target, Removed* removed);
  // Returns true if the next call of Run may remove more, so that other data can stay: not all listed nodes had their
  // turn, or the listed nodes have given up a quarter of the excess, or will when their last minutes are closed.
  bool is_enough() const { return !nodes_.empty() || listed_freed_ + listed_pending_ >= listed_over_ / 4; }
  // Call it when the shard is within its limit.
  void Rest();

  // Returns the size down to which data are removed for other nodes' definitions. It is the limit of the shard, or more
  // if the definitions that would stay without the oldest day's data need more than half of it: those of today, and
  // texts that earlier releases stored. Samples may always use the other half. As of
  // the last run.
  uint64_t kept_max() const { return kept_max_; }

 private:
  struct Node {
    int64_t machine = 0;
    int64_t bytes_over = 0;  // of its share
  };
  static bool HasLess(const Node& a, const Node& b) {
    return std::pair(a.bytes_over, a.machine) < std::pair(b.bytes_over, b.machine);
  }
  struct NodeDay {
    Day day;
    int64_t bytes = 0, definition_bytes = 0;  // `bytes` includes the definitions
  };

  NodeExpiry(Database& database, NodeLedger& ledger) : database_(database), ledger_(ledger) {}
  absl::Status RemoveFromNodes(const Target& target, Removed* removed);
  absl::Status FindNodes(const Target& target);
  void LimitNewDefinitions(const Target& target);
  // Returns the bytes that the shard is above its limit, without those that will go when the last minutes are closed.
  int64_t StillWanted(const Target& target, const Removed& removed) const {
    return static_cast<int64_t>(target.bytes_over) - removed.bytes - listed_pending_;
  }
  // Returns the bytes that this node must give up now.
  int64_t Wanted(const Node& node, const Target& target, const Removed& removed) const;
  absl::Status FindKeptMax(const Target& target);
  absl::Status ListLastAgain();
  // Returns the node's oldest day from which data may still be removed. If there is none, adds to `listed_pending_`.
  absl::StatusOr<std::optional<NodeDay>> OldestDay(const Node& node, const Target& target);
  void SetExhausted(int64_t machine, Day day, int64_t bytes);
  // Removes data of this day. Returns the bytes that the ledger has less for the node.
  absl::StatusOr<int64_t> RemoveFrom(const Node& node, const NodeDay& day, const Target& target, Removed* removed);
  absl::Status RemoveTimes(const Node& node, Day day, int64_t end, Removed* removed);
  absl::Status RemoveDefinitions(const Node& node, Day day, UnixNs now, Removed* removed);
  // Runs a DELETE that returns the bytes of each row. Adds the bytes to `*bytes`.
  absl::Status Delete(Statement& statement, int64_t* bytes, Removed* removed);

  Database& database_;
  NodeLedger& ledger_;
  Statement all_, definitions_since_, days_of_, keep_samples_end_, delete_raw_, delete_sums_, delete_events_,
      delete_processes_, delete_executables_, delete_strings_, delete_sessions_;
  std::vector<Node> nodes_;  // over their share, the one with the most bytes last
  int64_t listed_at_ns_ = 0;
  int64_t listed_over_ = 0;  // the shard's excess when the list was made
  // Bytes of the ledger, since then: removed, and of minutes that are not closed.
  int64_t listed_freed_ = 0, listed_pending_ = 0;
  uint64_t kept_max_ = 0;
  int64_t share_ = 0;
  int64_t texts_of_no_node_ = 0;  // bytes, of the days between the oldest one and today
  // Days without anything that can be removed, and the bytes that they had then: late data change the bytes. Days with
  // a damaged page are left out until the reducer starts again, or until the list is full.
  absl::flat_hash_map<std::pair<int64_t, int32_t>, int64_t> exhausted_;  // by machine and day
  // The minutes of `day_` before `minute_` were removed for `machine_`.
  int64_t machine_ = 0;
  Day day_{0};
  int64_t minute_ = 0;
  // In the current transaction.
  int64_t rows_max_ = 0, wanted_bytes_ = 0;
  int64_t freed_ = 0;  // as bytes of the ledger
};

}  // namespace tributary::store
