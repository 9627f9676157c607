#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "elf/cfi_entries.h"
#include "elf/compressed_section.h"
#include "elf/unwind_source.h"

namespace tributary {

// The limit for a compressed section after decompression. The whole section stays in memory while rows are compiled.
// Other sections are read block by block.
constexpr uint64_t kDecompressedBytesMax = 32u << 20;

// The location of an executable's unwind information.
struct UnwindSections {
  UnwindSource::Kind kind = UnwindSource::Kind::kNone;
  CfiSection section;

  // The search table: `table_count` pairs at `table_offset`, with addresses relative to `table_base`. If has_table is
  // false, a scan of the section must make the table.
  bool has_table = false;
  uint64_t table_offset = 0, table_base = 0, table_count = 0;
  // True if the section's size is unknown. A scan then ends at the first end mark.
  bool ends_at_mark = false;

  // If set, the section must be decompressed before it is read. Its offset is then 0.
  std::optional<CompressedSection> compressed;
};

// InvalidArgument if sizes or offsets are impossible. Returns the errors of ElfFile if the file cannot be read. A
// compressed section above kDecompressedBytesMax is ignored.
absl::StatusOr<UnwindSections> FindUnwindSections(ElfFile& file);

// Returns the range from the lowest to the highest address of executable segments. Addresses without bytes in the file
// do not count.
AddressRange TextOf(const ElfFile& file);

}  // namespace tributary
