#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "elf/cfi_entries.h"
#include "elf/compressed_section.h"
#include "elf/unwind_source.h"

namespace tributary {

// Limit of a compressed section. Its bytes stay in memory while rows are compiled, unlike those of other sections.
constexpr uint64_t kDecompressedBytesMax = 32u << 20;

// Unwind information of one executable, and its location.
struct UnwindSections {
  UnwindSource::Kind kind = UnwindSource::Kind::kNone;
  CfiSection section;

  // Search table: pairs at table_offset, relative to table_base. If has_table is false, a scan must build the table.
  bool has_table = false;
  uint64_t table_offset = 0, table_base = 0, table_count = 0;
  // True if the section's size is unknown. A scan then ends at the first end mark.
  bool ends_at_mark = false;

  // If set, the section must be decompressed before it is read. Its offset is then 0.
  std::optional<CompressedSection> compressed;
};

// InvalidArgument if sizes or places are impossible. Other errors are those of reads by ElfFile. A compressed section
// over kDecompressedBytesMax counts as missing.
absl::StatusOr<UnwindSections> FindUnwindSections(ElfFile& file);

// Returns the range from the lowest to the highest address of executable segments, as far as the file has bytes for
// them.
AddressRange TextOf(const ElfFile& file);

}  // namespace tributary
