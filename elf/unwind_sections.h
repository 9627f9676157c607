#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/statusor.h"
#include "elf/cfi_entries.h"
#include "elf/compressed_section.h"
#include "elf/unwind_source.h"

namespace tributary {

// What one executable has for unwinding, and where.
// Held in memory while rows are compiled, unlike the others.
constexpr uint64_t kDecompressedBytesMax = 32u << 20;

struct UnwindSections {
  UnwindSource::Kind kind = UnwindSource::Kind::kNone;
  CfiSection section;

  // Search table: pairs at table_offset, relative to table_base. With has_table false a scan must make one.
  bool has_table = false;
  uint64_t table_offset = 0, table_base = 0, table_count = 0;
  // The section's size is not known: a scan ends at the first end mark.
  bool ends_at_mark = false;

  // To be decompressed before the section is read, at its own offset 0.
  std::optional<CompressedSection> compressed;
};

// InvalidArgument: sizes and places that cannot be. Errors of reading as ElfFile's. A compressed section over
// kDecompressedBytesMax counts as none.
absl::StatusOr<UnwindSections> FindUnwindSections(ElfFile& file);

// From the lowest to the highest address of executable segments, as far as the file has bytes for them.
AddressRange TextOf(const ElfFile& file);

}  // namespace tributary
