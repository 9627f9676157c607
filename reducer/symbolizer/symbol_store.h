#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/clock.h"
#include "base/metrics.h"
#include "base/refusals.h"
#include "reducer/symbolizer/symbol_demand.h"
#include "reducer/symbolizer/symbol_files.h"
#include "reducer/symbolizer/symbol_notices.h"
#include "reducer/symbolizer/symbol_votes.h"
#include "symbols/frame_symbolizer.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The node that sent a symbol table.
struct SymbolSender {
  std::string node_id;  // "": unknown, or the table did not come from a node
  std::string version;  // of its collector
  std::string peer_id;  // SymbolWitness

  SymbolWitness witness() const { return {.node_id = node_id, .peer_id = peer_id}; }
};

// What a reducer should request from a node.
enum class SymbolAsk { kNothing, kTable, kDigest };

// Stores the symbol tables of all executables of the fleet, as files in a directory (symbol_files.h) that several
// reducers may share. Tables in use are mapped into memory. If a second table for an executable arrives, only one is
// kept: the table from the more trusted origin (SymbolOriginRank), then the better source, then more functions. Of two
// uploads that are equal in these, the newer one is kept. A reducer has one SymbolStore. Any thread may call any
// method; methods read or write files. A SymbolDemand remembers which tables were requested, so that only one node
// uploads the table of an executable. If only one node has sent a table, SymbolVotes compares it with the tables of
// other nodes, of which the reducer requests only the digests. The table of two independent nodes (SymbolWitness)
// replaces that of one node.
class SymbolStore {
 public:
  struct Options {
    std::string directory;
    uint64_t disk_bytes_max = 4ull << 30;       // half for .tsym files (table_eviction.h), half for .flat files
    uint64_t node_share_bytes_min = 16u << 20;  // TableLimits
    int64_t unused_ns = 7 * kNsPerDay;          // TableLimits::used_since: before now
    size_t mapped_max = 8192;                   // tables; the least recently used are unmapped first
    int64_t rescan_ns = 60'000'000'000;         // List reads the directory again after this time
    SymbolDemand::Options demand;
    SymbolVotes::Options votes;
    bool ask_digests = true;           // false: requests no digests, so that tables of one node stay unconfirmed
    SymbolNotices* notices = nullptr;  // gets a notice if nodes have different tables; null: none
    Refusals* refusals = nullptr;      // counts outvoted nodes, and tables without space, by node; null: counts nothing
  };
  static absl::StatusOr<std::unique_ptr<SymbolStore>> Open(Options options, const Clock& clock, Metrics& metrics);
  ~SymbolStore();

  // Returns true if the table of `id` should now be requested over the connection `asker`. Returns false if the table
  // is already stored, or if SymbolDemand::Ask returns false.
  bool ShouldRequest(const ExecutableId& id, SymbolAsker asker = SymbolAsker::kNone);
  // Returns what to request from a node over the connection `asker`: the table, as ShouldRequest does; or the table
  // that this node and another one have, if it is not the stored one; or the digest of a table that only one other node
  // is known to have. `sends_digests`: the node answers requests for digests.
  SymbolAsk WhatToAsk(const ExecutableId& id, SymbolAsker asker, const SymbolWitness& node, bool sends_digests);
  SymbolDemand& demand();

  struct Kept {
    bool stored = false;     // false: the existing table is the same, more trusted, or better
    bool contested = false;  // the new table describes other code than the existing table
    SymbolFiles::Row row;    // describes the table that is stored now
  };
  // `encoded` is the output of EncodeSymbolTable for `id`. InvalidArgument: `encoded` is not a valid table of `id`.
  // ResourceExhausted: the table is larger than half of `disk_bytes_max`, or more trusted tables leave no space, or the
  // disk is full. The store then decides when the table may be requested again. If an independent node sends the stored
  // table of another node, its origin becomes kNodes.
  absl::StatusOr<Kept> Put(const ExecutableId& id, std::string_view encoded, SymbolOrigin origin,
                           const SymbolSender& sender = {});
  // Compares the digest of a node's table with the stored table. An error means that the node has no table.
  void PutDigest(const ExecutableId& id, const SymbolSender& sender, const absl::StatusOr<SymbolDigest>& digest);
  void PutUnavailable(const ExecutableId& id, std::string_view why);

  // Deletes the table. Nodes may be asked for it again at once. NotFound: no table is stored.
  absl::Status Remove(const ExecutableId& id);

  // Returns the table, or nullptr if no table is stored so far or the table cannot be read.
  std::shared_ptr<const SymbolTable> Get(const ExecutableId& id);
  // Returns a function that calls Get. The store must outlive this function.
  SymbolLookup lookup() {
    return [this](const ExecutableId& id) { return Get(id); };
  }
  // Returns the description of the stored table. NotFound: no table is stored.
  absl::StatusOr<SymbolFiles::Row> Find(const ExecutableId& id) const;
  absl::StatusOr<std::vector<SymbolFiles::Row>> List();

 private:
  struct Impl;
  explicit SymbolStore(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace tributary
