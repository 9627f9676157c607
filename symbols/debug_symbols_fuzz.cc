#include <cstdint>
#include <cstdlib>

#include "symbols/debug_symbols.h"
#include "symbols/symbol_codec.h"

// The input is a file with debug information. It may contain anything. A table made of it must pass its own checks.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  auto file = ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto id = (*file)->Identity();
  if (!id.ok()) return 0;
  auto symbols = ReadDebugSymbols(**file, *id, {}, 1 << 20);
  if (!symbols.ok()) return 0;
  const SymbolTable& table = *symbols->table;
  for (uint32_t row = 0; row < table.row_count(); ++row) {
    const uint32_t found = table.FindRow(table.row_address(row));
    if (found != SymbolTable::kNoRow && found != row) abort();
  }
#ifdef TRIBUTARY_PLANT_CRASH
  // Reachable only with a file that has matching units, abbreviations and sections.
  if (symbols->counts.inlined == 3) abort();
#endif
  auto again = DecodeSymbolTable(EncodeSymbolTable(table));
  if (!again.ok() || (*again)->bytes() != table.bytes()) abort();
  return 0;
}
