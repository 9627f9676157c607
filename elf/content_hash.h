#pragma once

#include <cstdint>
#include <string_view>

#include "profile/executable_id.h"

namespace tributary {

// Of each end of the contents, and all of them where they are shorter.
constexpr size_t kContentHashEndBytes = 4096;

// The identity of what has no build-id (ExecutableIdKind::kContentHash), of its first and last bytes and its size.
ExecutableId ContentHash(std::string_view first, std::string_view last, uint64_t size);

// Of contents of kContentHashEndBytes at most.
inline ExecutableId ContentHash(std::string_view contents) { return ContentHash(contents, contents, contents.size()); }

}  // namespace tributary
