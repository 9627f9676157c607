#include "reducer/sqlite/column_packing.h"

#include <libdeflate.h>

#include <utility>

#include "base/status.h"
#include "base/zstd.h"
#include "reducer/sqlite/column_pieces.h"

namespace tributary::store {
namespace {

constexpr size_t kZstdBytesMin = 1024;
constexpr int64_t kRawBytesMax = int64_t{1} << 31;
constexpr uint8_t kHasChecksum = 0x80;  // in the first byte, which contains the version
constexpr size_t kChecksumBytes = 4;

// zlib's crc32_z takes ten times as long for a chunk of 150 bytes.
uint32_t ChecksumOf(std::string_view bytes) { return libdeflate_crc32(0, bytes.data(), bytes.size()); }

}  // namespace

PackedColumns PackColumns(std::string raw) {
  if (raw.size() >= kZstdBytesMin) {
    std::string packed = ZstdCompressWithChecksum(raw);
    if (packed.size() < raw.size() - raw.size() / 10) return {std::move(packed), raw.size()};
  }
  if (raw.empty()) return {};
  raw[0] = static_cast<char>(static_cast<uint8_t>(raw[0]) | kHasChecksum);
  const uint32_t checksum = ChecksumOf(raw);
  for (size_t i = 0; i < kChecksumBytes; ++i) raw.push_back(static_cast<char>(checksum >> (8 * i)));
  return {std::move(raw), 0};
}

absl::StatusOr<std::string> UnpackColumns(std::string_view bytes, int64_t raw_bytes) {
  std::string raw;
  RETURN_IF_ERROR(UnpackColumns(bytes, raw_bytes, &raw));
  return raw;
}

absl::Status UnpackColumns(std::string_view bytes, int64_t raw_bytes, std::string* raw) {
  if (raw_bytes == 0) {
    if (bytes.empty() || (static_cast<uint8_t>(bytes[0]) & kHasChecksum) == 0) {
      *raw = bytes;
      return absl::OkStatus();
    }
    if (bytes.size() <= kChecksumBytes) return CorruptColumns("columns");
    const std::string_view content = bytes.substr(0, bytes.size() - kChecksumBytes);
    uint32_t stored = 0;
    for (size_t i = 0; i < kChecksumBytes; ++i) {
      stored |= uint32_t{static_cast<uint8_t>(bytes[content.size() + i])} << (8 * i);
    }
    if (stored != ChecksumOf(content)) return CorruptColumns("columns");
    *raw = content;
    raw->front() = static_cast<char>(static_cast<uint8_t>(raw->front()) & ~kHasChecksum);
    return absl::OkStatus();
  }
  if (raw_bytes < 0 || raw_bytes > kRawBytesMax) return CorruptColumns("columns");
  absl::StatusOr<std::string> unpacked = ZstdDecompress(bytes, static_cast<size_t>(raw_bytes));
  if (!unpacked.ok()) return CorruptColumns("columns");
  *raw = *std::move(unpacked);
  return absl::OkStatus();
}

}  // namespace tributary::store
