#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "reducer/sqlite/node_ledger.h"
#include "reducer/sqlite/sqlite.h"
#include "reducer/store/store.h"

namespace tributary::store {

// Removes data of nodes that take more than their share of a shard that is above its size limit. The share is seven
// eighths of the limit, divided by the number of nodes: the ledger does not contain all bytes that SQLite uses. The
// node with the most bytes comes first, and its oldest day. Of a day, it removes samples, sums, events and processes in
// order of time, then the executables and texts that only this node has used. Data of the last minutes stay.
//
// Tries stay until the day ends for all nodes, because nodes share them.
//
// A list of the nodes over their share is made from a scan of node_day: one row of about 30 bytes for each node and
// day. It is used for a minute. Removing the oldest data of a node costs a few index look-ups for each minute of a day.
// Use it outside of transactions, on the writer's thread.
class NodeExpiry {
 public:
  static constexpr int64_t kRowsPerRun = 4000;

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
    std::vector<int64_t> machines;  // whose texts or executables were removed: their ids are not valid any more
  };
  // Removes about as many bytes as the shard is above its limit, but at most about kRowsPerRun rows. Removes no row if
  // all nodes have at most their share. `removed` is valid even after an error.
  absl::Status Run(const Target& target, Removed* removed);

  // Bytes of definitions that would stay if the oldest day's samples, sums and events were removed. As of the last
  // scan.
  uint64_t kept_definition_bytes() const { return kept_definition_bytes_; }

 private:
  struct Node {
    int64_t machine = 0;
    int64_t bytes_over = 0;  // of its share
  };

  NodeExpiry(Database& database, NodeLedger& ledger) : database_(database), ledger_(ledger) {}
  absl::Status FindNodes(const Target& target);
  // Removes data of the oldest day of the node that has any. Returns the bytes that the ledger has less for the node.
  absl::StatusOr<int64_t> RemoveOldest(const Node& node, const Target& target, Removed* removed);
  absl::Status RemoveTimes(int64_t machine, Day day, int64_t end, int64_t bytes_max, Removed* removed);
  absl::Status RemoveDefinitions(int64_t machine, Day day, Removed* removed);
  // Runs a DELETE that returns the bytes of each row. Adds the bytes to `*bytes`.
  absl::Status Delete(Statement& statement, int64_t* bytes, Removed* removed);

  Database& database_;
  NodeLedger& ledger_;
  Statement all_, days_of_, keep_samples_end_, delete_raw_, delete_sums_, delete_events_, delete_processes_,
      delete_executables_, delete_strings_, forget_day_, forget_definitions_;
  std::vector<Node> nodes_;  // over their share, the one with the most bytes last
  int64_t nodes_as_of_ns_ = 0;
  uint64_t kept_definition_bytes_ = 0;
  // All earlier minutes of this machine and day were removed.
  int64_t machine_ = 0;
  Day day_{0};
  int64_t minute_ = 0;
  int64_t freed_ = 0;  // in the current transaction, as bytes of the ledger
};

}  // namespace tributary::store
