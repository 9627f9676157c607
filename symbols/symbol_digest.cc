#include "symbols/symbol_digest.h"

namespace tributary {

SymbolDigest DigestOf(std::string_view encoded) {
  // An encoded table begins with its magic (4 bytes), its version and its source (docs/symbol-table.md).
  constexpr size_t kSourceAt = 5;
  SymbolDigest digest{.sha256 = Sha256(encoded)};
  if (encoded.size() > kSourceAt) digest.source = static_cast<SymbolSource>(encoded[kSourceAt]);
  return digest;
}

}  // namespace tributary
