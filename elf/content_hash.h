#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// Returns an id of `kind`: the first 16 bytes of the SHA-256 of `bytes`.
std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes);

// Number of bytes hashed at each end of the contents. Shorter contents are hashed completely.
constexpr size_t kContentHashEndBytes = 4096;

// Returns the identity of contents without a build-id (ExecutableIdKind::kContentHash): a hash of their first bytes,
// last bytes and size.
ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size);

// For contents of at most kContentHashEndBytes.
inline ExecutableId ContentHash(std::string_view contents) { return ContentHash(contents, contents, contents.size()); }

}  // namespace tributary
