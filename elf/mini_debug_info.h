#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// Function symbols that some distributions leave in stripped files ("MiniDebugInfo"): an ELF file with a .symtab,
// compressed by xz, in the section .gnu_debugdata. Its symbols refer to the sections and addresses of the outer file.
struct MiniDebugInfo {
  static constexpr uint64_t kRawBytesMax = 64u << 20;

  std::string bytes;
  std::unique_ptr<ElfFile> file;  // reads `bytes`
};

// NotFound if the file has none. ResourceExhausted if it has more than kRawBytesMax or `bytes_max` bytes, compressed or
// raw. InvalidArgument if it is corrupt or not such a file.
absl::StatusOr<std::unique_ptr<MiniDebugInfo>> ReadMiniDebugInfo(ElfFile& file, uint64_t bytes_max);

}  // namespace tributary
