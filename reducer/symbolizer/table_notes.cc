#include "reducer/symbolizer/table_notes.h"

#include <algorithm>
#include <cstring>

namespace tributary {
namespace {

// The values are stored on disk: do not change them, only add new ones.
enum Kind : uint8_t { kNode = 1, kDisputer = 2, kVersion = 3, kSha256 = 4, kPeer = 5 };

void Append(Kind kind, std::string_view text, std::string& to) {
  text = text.substr(0, TableNotes::kTextBytesMax);
  to += static_cast<char>(kind);
  to += static_cast<char>(text.size());
  to += text;
}

// Each fact takes two bytes more than its text.
static_assert((TableNotes::kNodesMax + TableNotes::kDisputersMax + 1) * (TableNotes::kTextBytesMax + 2) +
                  TableNotes::kNodesMax * (TableNotes::kPeerBytesMax + 2) + sizeof(Sha256Digest) + 2 <=
              kTableFileNotesMax);

}  // namespace

std::vector<std::string> TableNotes::node_ids() const {
  std::vector<std::string> ids;
  for (const SymbolWitness& node : nodes) ids.push_back(node.node_id);
  return ids;
}

std::string EncodeTableNotes(const TableNotes& notes) {
  std::string bytes;
  for (size_t i = 0; i < std::min(notes.nodes.size(), TableNotes::kNodesMax); ++i) {
    const SymbolWitness& node = notes.nodes[i];
    Append(kNode, node.node_id, bytes);
    if (!node.peer_id.empty()) Append(kPeer, node.peer_id.substr(0, TableNotes::kPeerBytesMax), bytes);
  }
  for (size_t i = 0; i < std::min(notes.disputed_by.size(), TableNotes::kDisputersMax); ++i) {
    Append(kDisputer, notes.disputed_by[i], bytes);
  }
  if (!notes.version.empty()) Append(kVersion, notes.version, bytes);
  if (notes.sha256) {
    Append(kSha256, {reinterpret_cast<const char*>(notes.sha256->data()), notes.sha256->size()}, bytes);
  }
  return bytes;
}

TableNotes ParseTableNotes(std::string_view bytes) {
  TableNotes notes;
  while (bytes.size() >= 2) {
    const auto kind = static_cast<uint8_t>(bytes[0]);
    const size_t size = static_cast<uint8_t>(bytes[1]);
    if (bytes.size() - 2 < size) break;
    const std::string_view text = bytes.substr(2, size);
    if (kind == kNode && notes.nodes.size() < TableNotes::kNodesMax) {
      notes.nodes.push_back({.node_id = std::string(text), .peer_id = ""});
    }
    if (kind == kPeer && !notes.nodes.empty())
      notes.nodes.back().peer_id.assign(text.substr(0, TableNotes::kPeerBytesMax));
    if (kind == kDisputer && notes.disputed_by.size() < TableNotes::kDisputersMax) {
      notes.disputed_by.emplace_back(text);
    }
    if (kind == kVersion) notes.version.assign(text);
    if (kind == kSha256 && size == sizeof(Sha256Digest)) {
      std::memcpy(notes.sha256.emplace().data(), text.data(), sizeof(Sha256Digest));
    }
    bytes.remove_prefix(2 + size);
  }
  return notes;
}

}  // namespace tributary
