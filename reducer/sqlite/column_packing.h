#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Packs the chunks that column_codec.h, process_columns.h and event_columns.h encode.

namespace tributary::store {

// A chunk as it is stored. It is compressed with zstd if it has at least 1 KiB and compression saves more than 10% of
// its size. For a smaller chunk, setting up zstd costs more than it saves. PackColumns adds a checksum, and
// UnpackColumns checks it: zstd's own, or a CRC-32 at the end of an uncompressed chunk, whose first byte then has its
// highest bit set. Chunks of earlier releases have no checksum.
struct PackedColumns {
  std::string bytes;
  uint64_t raw_bytes = 0;  // size before compression; 0: `bytes` is not compressed
};
PackedColumns PackColumns(std::string raw);
absl::StatusOr<std::string> UnpackColumns(std::string_view bytes, int64_t raw_bytes);
// The same into `*raw`. Uncompressed chunks use its memory again.
absl::Status UnpackColumns(std::string_view bytes, int64_t raw_bytes, std::string* raw);

}  // namespace tributary::store
