#include "elf/mini_debug_info.h"

#include <algorithm>

#include "base/status.h"
#include "elf/xz.h"

namespace tributary {

absl::StatusOr<std::unique_ptr<MiniDebugInfo>> ReadMiniDebugInfo(ElfFile& file, uint64_t bytes_max) {
  ASSIGN_OR_RETURN(const std::vector<ElfSection>* sections, file.Sections());
  auto section =
      std::find_if(sections->begin(), sections->end(), [](const ElfSection& s) { return s.name == ".gnu_debugdata"; });
  if (section == sections->end()) return Error(absl::StatusCode::kNotFound, "ELF file: no .gnu_debugdata");
  bytes_max = std::min(bytes_max, MiniDebugInfo::kRawBytesMax);
  ASSIGN_OR_RETURN(const std::string stored, file.SectionBytes(*section, bytes_max));
  auto out = std::make_unique<MiniDebugInfo>();
  ASSIGN_OR_RETURN(out->bytes, XzDecompress(stored, bytes_max));
  ASSIGN_OR_RETURN(out->file, ElfFile::FromMemory(out->bytes));
  if (out->file->machine() != file.machine()) {
    return Error(absl::StatusCode::kInvalidArgument,
                 ".gnu_debugdata: its machine type differs from the machine type of the file");
  }
  return out;
}

}  // namespace tributary
