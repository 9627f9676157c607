#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// What the decoder may take beside its output: enough for xz -9.
constexpr uint64_t kXzMemoryBytesMax = 80u << 20;

// One .xz stream, whose raw size is not known before. ResourceExhausted: more than `bytes_max` raw bytes, or a decoder
// that would need more than kXzMemoryBytesMax. InvalidArgument: corrupt, cut off, or bytes behind it.
absl::StatusOr<std::string> XzDecompress(std::string_view stored, uint64_t bytes_max);

}  // namespace tributary
