#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// A compressed section, in one of two forms. In the usual form, it has the flag SHF_COMPRESSED and uses zlib or zstd
// (gABI, "Section Compression"). In the older form, its name begins with .zdebug and its bytes with "ZLIB".
struct CompressedSection {
  enum class Codec { kZlib, kZstd };
  Codec codec = Codec::kZlib;
  uint64_t offset = 0;  // of the compressed bytes in the file
  uint64_t size = 0;
  uint64_t raw_size = 0;
};

bool IsCompressed(const ElfSection& section);

// InvalidArgument if the codec is unknown, or if the section is shorter than its header.
absl::StatusOr<CompressedSection> ReadCompressedHeader(ElfFile& file, const ElfSection& section);

// Returns the decompressed section, exactly raw_size bytes. ResourceExhausted if the section has more than `bytes_max`
// bytes, compressed or raw. InvalidArgument if the section is corrupt.
absl::StatusOr<std::string> Decompress(ElfFile& file, const CompressedSection& section, uint64_t bytes_max);

}  // namespace tributary
