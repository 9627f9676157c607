#include "elf/compressed_section.h"

#include <zlib.h>

#include "base/status.h"
#include "base/zstd.h"
#include "elf/elf_format.h"

namespace tributary {
namespace {

struct ElfCompressionHeader {
  uint32_t type;
  uint32_t reserved;
  uint64_t size;
  uint64_t alignment;
};
static_assert(sizeof(ElfCompressionHeader) == 24);
constexpr uint32_t kCompressionZlib = 1, kCompressionZstd = 2;

constexpr size_t kOldHeaderBytes = 12;  // "ZLIB" and the size, big-endian

// Maximum output of zlib per input byte. A larger claimed size is wrong, and nothing is allocated for it.
constexpr uint64_t kZlibRatioMax = 1032;

absl::Status Malformed(std::string_view what) {
  return Error(absl::StatusCode::kInvalidArgument, "compressed section: " + std::string(what));
}

absl::StatusOr<std::string> Inflate(std::string_view stored, uint64_t raw_size) {
  if (raw_size / kZlibRatioMax > stored.size())
    return Malformed("the uncompressed size is too large for the compressed size");
  std::string raw(raw_size, '\0');
  uLongf size = raw_size;
  uLong used = stored.size();
  int result =
      uncompress2(reinterpret_cast<Bytef*>(raw.data()), &size, reinterpret_cast<const Bytef*>(stored.data()), &used);
  if (result != Z_OK || size != raw_size) return Malformed("zlib stream is corrupt");
  return raw;
}

}  // namespace

bool IsCompressed(const ElfSection& section) {
  return (section.flags & kElfSectionCompressed) != 0 || section.name.substr(0, 7) == ".zdebug";
}

absl::StatusOr<CompressedSection> ReadCompressedHeader(ElfFile& file, const ElfSection& section) {
  CompressedSection out;
  uint64_t header_size = 0;
  if ((section.flags & kElfSectionCompressed) != 0) {
    ElfCompressionHeader header;
    header_size = sizeof(header);
    if (section.size < header_size) return Malformed("the section is shorter than its header");
    RETURN_IF_ERROR(file.ReadAt(section.offset, sizeof(header), reinterpret_cast<char*>(&header)));
    if (header.type != kCompressionZlib && header.type != kCompressionZstd)
      return Malformed("unknown compression method");
    if (header.type == kCompressionZstd) out.codec = CompressedSection::Codec::kZstd;
    out.raw_size = header.size;
  } else {
    unsigned char header[kOldHeaderBytes];
    header_size = sizeof(header);
    if (section.size < header_size) return Malformed("the section is shorter than its header");
    RETURN_IF_ERROR(file.ReadAt(section.offset, sizeof(header), reinterpret_cast<char*>(header)));
    if (std::memcmp(header, "ZLIB", 4) != 0) return Malformed("unknown compression method");
    for (size_t i = 4; i < sizeof(header); ++i) out.raw_size = out.raw_size << 8 | header[i];
  }
  out.offset = section.offset + header_size;
  out.size = section.size - header_size;
  return out;
}

absl::StatusOr<std::string> Decompress(ElfFile& file, const CompressedSection& section, uint64_t bytes_max) {
  if (section.size > bytes_max || section.raw_size > bytes_max) {
    return Error(absl::StatusCode::kResourceExhausted,
                 "compressed section: the compressed or the uncompressed size is over the limit");
  }
  std::string stored(section.size, '\0');
  RETURN_IF_ERROR(file.ReadAt(section.offset, stored.size(), stored.data()));
  if (section.codec == CompressedSection::Codec::kZstd) return ZstdDecompress(stored, section.raw_size);
  return Inflate(stored, section.raw_size);
}

}  // namespace tributary
