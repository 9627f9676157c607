#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// The limit for the decoder's memory in addition to its output. It is enough for xz -9.
constexpr uint64_t kXzMemoryBytesMax = 80u << 20;

// Decompresses one .xz stream. ResourceExhausted if the result has more than `bytes_max` bytes, or if the decoder needs
// more memory than kXzMemoryBytesMax. InvalidArgument if the stream is corrupt, cut off, or followed by more bytes.
absl::StatusOr<std::string> XzDecompress(std::string_view stored, uint64_t bytes_max);

}  // namespace tributary
