#include "elf/function_bounds.h"

#include <algorithm>

#include "base/status.h"
#include "elf/cfi_table.h"
#include "elf/elf_format.h"
#include "elf/unwind_sections.h"

namespace tributary {
namespace {

constexpr size_t kWindowBlocks = 64;  // 1 MiB

// Returns the part of the function that lies in the executable segment of the function's begin.
AddressRange WithinCode(const ElfFile& file, AddressRange function) {
  for (const ElfSegment& segment : file.segments()) {
    if (!segment.executable || function.begin < segment.address ||
        function.begin - segment.address >= segment.memory_size) {
      continue;
    }
    return {function.begin, std::min(function.end, segment.address + segment.memory_size)};
  }
  return {};
}

// Keeps the longest of several ranges with the same begin.
void SortUnique(std::vector<AddressRange>& ranges) {
  std::sort(ranges.begin(), ranges.end(), [](const AddressRange& a, const AddressRange& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.end > b.end;
  });
  auto same_begin = [](const AddressRange& a, const AddressRange& b) { return a.begin == b.begin; };
  ranges.erase(std::unique(ranges.begin(), ranges.end(), same_begin), ranges.end());
  ranges.shrink_to_fit();
}

}  // namespace

absl::StatusOr<FunctionBounds> FindFunctionBounds(ElfFile& file) {
  FunctionBounds out;
  ASSIGN_OR_RETURN(const UnwindSections sections, FindUnwindSections(file));
  if (sections.kind != UnwindSource::Kind::kEhFrame) return out;
  FileWindow window(&file, kWindowBlocks);
  CfiEntries entries(sections.section, file.machine() == kElfMachineArm64 ? kCfiArm64 : kCfiX86_64, &window);
  CfiTable table;
  if (sections.has_table) {
    const uint64_t count = std::min(sections.table_count, UnwindSource::kEntriesMax);
    out.left_out_entries = sections.table_count - count;
    table = CfiTable::OfFile(&file, sections.table_offset, sections.table_base, count);
  } else {
    table = CfiTable::OfScan(entries, {.text = TextOf(file), .ends_at_mark = sections.ends_at_mark}, &out.bad_entries,
                             &out.left_out_entries);
    entries.Refill();
  }
  for (uint64_t i = 0; i < table.size(); ++i) {
    const auto item = table.At(i, sections.section);
    CfiEntry entry;
    if (!item || item->offset == UINT64_MAX || !entries.Read(item->offset, &entry) ||
        entry.function.begin != item->address) {
      // Returns the first read failure at once: the ranges found so far are no reason to trust the file.
      RETURN_IF_ERROR(table.status());
      RETURN_IF_ERROR(window.status());
      ++out.bad_entries;
      continue;
    }
    const AddressRange function = WithinCode(file, entry.function);
    if (function.begin < function.end) out.ranges.push_back(function);
  }
  SortUnique(out.ranges);
  return out;
}

}  // namespace tributary
