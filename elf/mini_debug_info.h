#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// MiniDebugInfo: function symbols that some distributions leave in stripped files. The section .gnu_debugdata contains
// an inner ELF file with a .symtab, compressed with xz. The symbols of the inner file refer to the sections and
// addresses of the outer file.
struct MiniDebugInfo {
  static constexpr uint64_t kRawBytesMax = 64u << 20;

  std::string bytes;
  std::unique_ptr<ElfFile> file;  // reads `bytes`
};

// NotFound if the file has no MiniDebugInfo. ResourceExhausted if the inner file has more than kRawBytesMax or
// `bytes_max` bytes, compressed or decompressed. InvalidArgument if the section is corrupt or contains no ELF file.
absl::StatusOr<std::unique_ptr<MiniDebugInfo>> ReadMiniDebugInfo(ElfFile& file, uint64_t bytes_max);

}  // namespace tributary
