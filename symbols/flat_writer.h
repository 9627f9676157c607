#pragma once

#include <string>
#include <vector>

#include "profile/executable_id.h"
#include "symbols/flat_layout.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The contents of a symbol table in flat form (flat_layout.h).
struct FlatContents {
  ExecutableId id;
  SymbolSource source = SymbolSource::kNone;
  std::vector<flat::Segment> segments;
  std::vector<uint32_t> row_addresses, row_nodes, row_places;
  std::vector<flat::Node> nodes;
  std::vector<flat::Place> places;
  std::vector<uint64_t> starts;
  std::vector<flat::CodeKind> code_kinds;
  std::vector<uint32_t> string_offsets;
  std::string string_bytes;
};

std::string WriteFlat(const FlatContents& contents);

}  // namespace tributary
