#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// An id of that kind: the first 16 bytes of the SHA-256 of `bytes`.
std::optional<ExecutableId> HashId(ExecutableIdKind kind, std::string_view bytes);

// Of each end of the contents, and all of them where they are shorter.
constexpr size_t kContentHashEndBytes = 4096;

// The identity of what has no build-id (ExecutableIdKind::kContentHash), of its first and last bytes and its size.
ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size);

// Of contents of kContentHashEndBytes at most.
inline ExecutableId ContentHash(std::string_view contents) { return ContentHash(contents, contents, contents.size()); }

}  // namespace tributary
