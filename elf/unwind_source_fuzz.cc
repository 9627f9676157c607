#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "elf/unwind_source.h"

// The input is an executable of a container. The collector compiles its unwind information. It may contain anything.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto file = tributary::ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto source = tributary::UnwindSource::Open(*std::move(file));
  if (!source.ok()) return 0;
  tributary::AddressRange text = (*source)->text();
  if (text.begin >= text.end) return 0;
  uint64_t middle = text.begin + std::min<uint64_t>((text.end - text.begin) / 2, 1 << 20);
  for (tributary::AddressRange range : {tributary::AddressRange{text.begin, std::min(text.end, text.begin + (1 << 20))},
                                        tributary::AddressRange{middle, std::min(text.end, middle + 4096)}}) {
    std::vector<tributary::UnwindRow> rows;
    if (!(*source)->Compile(range, &rows).ok()) continue;
    if (rows.empty() || rows[0].offset != 0 || rows.back().offset >= range.end - range.begin) abort();
    for (size_t i = 1; i < rows.size(); ++i) {
      if (rows[i].offset <= rows[i - 1].offset || rows[i].rule == rows[i - 1].rule) abort();
    }
#ifdef TRIBUTARY_PLANT_CRASH
    // Reachable only with a well-formed function with instructions that rules cannot express. The corpus has no such
    // file.
    if ((*source)->counts().unsupported_rows > 0) abort();
#endif
  }
  return 0;
}
