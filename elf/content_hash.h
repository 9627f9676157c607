#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// Returns an id of this kind, which consists of the first 16 bytes of the SHA-256 of `bytes`. Returns nullopt for
// kNone.
std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes);

// How many bytes are hashed at the beginning and at the end of the contents. Shorter contents are hashed completely.
constexpr size_t kContentHashEndBytes = 4096;

// Returns the id of contents that have no build-id (ExecutableIdKind::kContentHash): a hash of the first bytes, the
// last bytes and the size.
ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size);

// The same, for contents of at most kContentHashEndBytes bytes.
inline ExecutableId ContentHash(std::string_view contents) { return ContentHash(contents, contents, contents.size()); }

}  // namespace tributary
