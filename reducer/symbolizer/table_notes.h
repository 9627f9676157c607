#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "symbols/table_file.h"

namespace tributary {

// A node that has a table, or its digest.
struct SymbolWitness {
  std::string node_id;
  std::string peer_id;  // of its connection (intake/server/peer_id.h); "": unknown

  // Returns true if the other node is another machine, as far as the reducer can see: the peers are known and differ.
  bool IsIndependentOf(const SymbolWitness& other) const {
    return node_id != other.node_id && !peer_id.empty() && !other.peer_id.empty() && peer_id != other.peer_id;
  }
  // Returns true if it is the same node, or known to be the same peer.
  bool IsSameAs(const SymbolWitness& other) const {
    return node_id == other.node_id || (!peer_id.empty() && peer_id == other.peer_id);
  }
  friend bool operator==(const SymbolWitness&, const SymbolWitness&) = default;
};

// Facts about a node's symbol table that a reducer stores in the table's file (TableFile::notes). A table of an earlier
// release, and a table that did not come from a node, has no notes.
struct TableNotes {
  static constexpr size_t kNodesMax = 2;  // more nodes add no trust
  static constexpr size_t kDisputersMax = 4;
  static constexpr size_t kTextBytesMax = 255;  // longer texts are cut
  static constexpr size_t kPeerBytesMax = 32;   // of a peer id

  std::vector<SymbolWitness> nodes;      // that have this table; the first one sent it
  std::vector<std::string> disputed_by;  // ids of nodes whose file with this build-id has another table
  std::string version;                   // of the collector that made the table
  std::optional<Sha256Digest> sha256;    // of the encoded table (SymbolDigest)

  std::vector<std::string> node_ids() const;

  friend bool operator==(const TableNotes&, const TableNotes&) = default;
};

// The encoded form is a list of facts: its kind (1 byte), its length (1 byte), its bytes.
std::string EncodeTableNotes(const TableNotes& notes);
// Skips kinds that only a later release knows, and stops at malformed bytes.
TableNotes ParseTableNotes(std::string_view bytes);

}  // namespace tributary
