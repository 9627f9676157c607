#pragma once

#include <string_view>

#include "base/sha256.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Identifies an encoded symbol table. Two nodes with equal files make tables with equal digests, if their collectors
// are of the same build and read the same source of names. A hostile node cannot make another table with a given
// digest.
struct SymbolDigest {
  Sha256Digest sha256{};                      // of the encoded table
  SymbolSource source = SymbolSource::kNone;  // of its names; nodes can choose it (--upload-debug-info)

  friend bool operator==(const SymbolDigest&, const SymbolDigest&) = default;
};

// `encoded`: the output of EncodeSymbolTable.
SymbolDigest DigestOf(std::string_view encoded);

}  // namespace tributary
