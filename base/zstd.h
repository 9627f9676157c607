#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// Compress and decompress with zstd. The caller must store the uncompressed size separately. Used for intake payloads,
// symbol tables and the store's chunks.
std::string ZstdCompress(std::string_view raw, int level = 1);
// Adds a checksum of 4 bytes, which ZstdDecompress checks.
std::string ZstdCompressWithChecksum(std::string_view raw);
// Returns InvalidArgument unless `stored` is one or more zstd frames that decompress to exactly `raw_size` bytes.
// Allocates at most `raw_size` bytes for the result.
absl::StatusOr<std::string> ZstdDecompress(std::string_view stored, size_t raw_size);

}  // namespace tributary
