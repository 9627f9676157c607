#pragma once

#include <cstdint>
#include <functional>

#include "kernel-collector/processes/mapping_table.h"

namespace tributary {

// A part of a mapping that belongs to one executable ELF segment, or to no segment. A mapping begins at the start of a
// page, but a segment often begins within a page. So the piece of a segment contains whole pages, except for bytes that
// belong to another segment.
struct CodePiece {
  uint64_t start = 0, end = 0;
  bool in_segment = false;
  uint64_t bias = 0;  // in a segment: address − bias = ELF virtual address
};

// Calls `visit` for each piece of a mapping, in order of address. The pieces cover the whole mapping; an ordinary
// mapping has one piece. `visit` returns false to stop.
void ForEachPiece(const Mapping& mapping, const CodeFile& executable,
                  const std::function<bool(const CodePiece& piece)>& visit);
// Returns the piece that contains `address`, which must be in the mapping.
CodePiece PieceAt(const Mapping& mapping, const CodeFile& executable, uint64_t address);

}  // namespace tributary
