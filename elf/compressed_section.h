#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// A section stored compressed: SHF_COMPRESSED with zlib or zstd (gABI, "Section Compression"), or the older way of a
// name in .zdebug and a header "ZLIB".
struct CompressedSection {
  enum class Codec { kZlib, kZstd };
  Codec codec = Codec::kZlib;
  uint64_t offset = 0;  // of the compressed bytes in the file
  uint64_t size = 0;
  uint64_t raw_size = 0;
};

bool IsCompressed(const ElfSection& section);

// InvalidArgument: another codec, or sizes that cannot be.
absl::StatusOr<CompressedSection> ReadCompressedHeader(ElfFile& file, const ElfSection& section);

// Exactly raw_size bytes. ResourceExhausted: more than `bytes_max`, compressed or raw. InvalidArgument: corrupt.
absl::StatusOr<std::string> Decompress(ElfFile& file, const CompressedSection& section, uint64_t bytes_max);

}  // namespace tributary
