#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "symbols/table_file.h"

namespace tributary {

// Facts about a node's symbol table that a reducer stores in the table's file (TableFile::notes). A table of an earlier
// release, and a table that did not come from a node, has no notes.
struct TableNotes {
  static constexpr size_t kNodesMax = 2;  // more nodes add no trust
  static constexpr size_t kDisputersMax = 4;
  static constexpr size_t kTextBytesMax = 255;  // longer texts are cut

  std::vector<std::string> nodes;        // ids of the nodes that have this table; the first one sent it
  std::vector<std::string> disputed_by;  // ids of nodes whose file with this build-id has another table
  std::string version;                   // of the collector that made the table
  std::optional<Sha256Digest> sha256;    // of the encoded table (SymbolDigest)

  friend bool operator==(const TableNotes&, const TableNotes&) = default;
};

// The encoded form is a list of facts: its kind (1 byte), its length (1 byte), its bytes.
std::string EncodeTableNotes(const TableNotes& notes);
// Skips kinds that only a later release knows, and stops at malformed bytes.
TableNotes ParseTableNotes(std::string_view bytes);

}  // namespace tributary
