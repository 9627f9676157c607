#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/executable_id.h"
#include "symbols/symbol_digest.h"

namespace tributary::ingest {

// A node that may be asked for symbol tables.
struct SymbolNode {
  uint64_t connection = 0;  // the number of a connection to the node
  std::string node_id;
  std::string version;  // of its collector
  std::string peer_id;  // intake/server/peer_id.h
  bool sends_digests = false;
};

// Decides which symbol tables a shard requests from its nodes, and stores the tables that they send. `asker` is
// SymbolNode::connection. Use the desk on the shard's loop.
class SymbolDesk {
 public:
  // What to request from a node.
  struct Choice {
    std::vector<ExecutableId> tables;
    std::vector<ExecutableId> digests;  // of tables that another node has sent
    size_t considered = 0;              // the number of candidates that were checked, counted from the first
  };
  // Chooses at most `ask_max` of `candidates`. Calls `reply` later, on the shard's loop. Returns false if too many
  // calls wait for their reply; then `reply` is not called.
  using Reply = std::function<void(const Choice& choice)>;
  virtual bool TryChoose(const SymbolNode& node, std::vector<ExecutableId> candidates, size_t ask_max, Reply reply) = 0;
  // Stores a node's symbol table, or the error that the node sent instead. If too many tables wait to be stored, drops
  // this one and counts it in a metric. The table is requested again later.
  virtual void Take(const SymbolNode& node, const ExecutableId& id, absl::StatusOr<std::string> encoded_table) = 0;
  // Compares the digest with the stored table. NotFound: the node has no table.
  virtual void TakeDigest(const SymbolNode& node, const ExecutableId& id,
                          const absl::StatusOr<SymbolDigest>& digest) = 0;
  virtual void Progress(uint64_t asker) = 0;  // the node is sending a table
  virtual void Release(uint64_t asker) = 0;   // the connection ended: its tables may be requested from other nodes
  // Returns the executables whose requested tables did not arrive, because the connection ended or the table was
  // damaged. Returns the executables of all shards since the last call.
  virtual std::vector<ExecutableId> TakeReleased() = 0;

 protected:
  ~SymbolDesk() = default;
};

}  // namespace tributary::ingest
