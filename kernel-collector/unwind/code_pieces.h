#pragma once

#include <cstdint>
#include <functional>

#include "kernel-collector/processes/mapping_table.h"

namespace tributary {

// Part of a mapping that is one executable segment's, or none's. A mapping begins at a page's start, a segment often
// within the page, so a segment's piece reaches to the ends of its pages, as far as no other segment's bytes are there.
struct CodePiece {
  uint64_t start = 0, end = 0;
  bool in_segment = false;
  uint64_t bias = 0;  // in a segment: address − bias = ELF virtual address
};

// Pieces of a mapping in order of address, covering it; one for an ordinary mapping. `visit` returns false to stop.
void ForEachPiece(const Mapping& mapping, const CodeFile& executable,
                  const std::function<bool(const CodePiece& piece)>& visit);
// The one that holds `address`, which is in the mapping.
CodePiece PieceAt(const Mapping& mapping, const CodeFile& executable, uint64_t address);

}  // namespace tributary
