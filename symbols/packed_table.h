#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/zstd.h"

namespace tributary {

// An encoded symbol table as it travels and rests. Packing a large one takes tens of milliseconds: not for a loop.
struct PackedTable {
  std::string zstd;
  uint64_t raw_bytes = 0;

  static PackedTable Of(std::string_view encoded) { return {ZstdCompress(encoded), encoded.size()}; }
};

}  // namespace tributary
