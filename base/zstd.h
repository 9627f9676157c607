#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// zstd with a known raw size: the format of intake payloads and symbol tables, on the wire and in storage.
std::string ZstdCompress(std::string_view raw, int level = 1);
// InvalidArgument unless `stored` is one or more zstd frames of exactly `raw_size` bytes. Allocates at most `raw_size`
// bytes for the result.
absl::StatusOr<std::string> ZstdDecompress(std::string_view stored, size_t raw_size);

}  // namespace tributary
