#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// zstd with a known raw size: how intake payloads and symbol tables travel and rest.
std::string ZstdCompress(std::string_view raw, int level = 1);
// InvalidArgument unless `stored` is one zstd frame (or several) of exactly `raw_size` bytes; never allocates more than
// that.
absl::StatusOr<std::string> ZstdDecompress(std::string_view stored, size_t raw_size);

}  // namespace tributary
