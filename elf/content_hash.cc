#include "elf/content_hash.h"

#include <span>
#include <string>

#include "base/sha256.h"

namespace tributary {
namespace {

constexpr size_t kHashBytes = 16;  // number of bytes kept of the SHA-256

}  // namespace

std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes) {
  const Sha256Digest digest = Sha256(bytes);
  return ExecutableId::Make(kind, std::span(digest).first(kHashBytes));
}

ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size) {
  std::string hashed(first);
  hashed += last;
  for (int shift = 56; shift >= 0; shift -= 8) hashed.push_back(static_cast<char>(size >> shift));
  return *HashId(ExecutableIdKind::kContentHash, hashed);
}

}  // namespace tributary
