#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "elf/elf_file.h"

namespace tributary {

// The function symbols that some distributions leave in what they strip ("MiniDebugInfo"): an ELF file with a .symtab,
// compressed by xz, in the section .gnu_debugdata. Its symbols are of the sections and addresses of the file around it.
struct MiniDebugInfo {
  static constexpr uint64_t kRawBytesMax = 64u << 20;

  std::string bytes;
  std::unique_ptr<ElfFile> file;  // reads `bytes`
};

// NotFound: none. ResourceExhausted: more than kRawBytesMax or `bytes_max`, compressed or raw. InvalidArgument:
// corrupt, or not such a file.
absl::StatusOr<std::unique_ptr<MiniDebugInfo>> ReadMiniDebugInfo(ElfFile& file, uint64_t bytes_max);

}  // namespace tributary
