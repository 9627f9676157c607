#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// Limit of the decoder's memory in addition to its output: enough for xz -9.
constexpr uint64_t kXzMemoryBytesMax = 80u << 20;

// Decompresses one .xz stream of unknown raw size. ResourceExhausted if there are more than `bytes_max` raw bytes, or
// if the decoder needs more than kXzMemoryBytesMax. InvalidArgument if the stream is corrupt, cut off, or followed by
// more bytes.
absl::StatusOr<std::string> XzDecompress(std::string_view stored, uint64_t bytes_max);

}  // namespace tributary
