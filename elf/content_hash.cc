#include "elf/content_hash.h"

#include <openssl/sha.h>

#include <array>
#include <span>
#include <string>

namespace tributary {
namespace {

constexpr size_t kHashBytes = 16;  // number of bytes kept of the SHA-256

}  // namespace

std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes) {
  std::array<uint8_t, SHA256_DIGEST_LENGTH> digest;
  SHA256(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), digest.data());
  return ExecutableId::Make(kind, std::span(digest).first(kHashBytes));
}

ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size) {
  std::string hashed(first);
  hashed += last;
  for (int shift = 56; shift >= 0; shift -= 8) hashed.push_back(static_cast<char>(size >> shift));
  return *HashId(ExecutableIdKind::kContentHash, hashed);
}

}  // namespace tributary
