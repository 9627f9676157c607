#include <cstdint>
#include <cstdlib>

#include "symbols/elf_symbols.h"
#include "symbols/symbol_codec.h"

// The input is an executable. It may contain anything. A table made of its symbols must pass its own checks.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  auto file = ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto id = (*file)->Identity();
  if (!id.ok()) return 0;
  auto table = ReadElfSymbols(**file, *id, 1 << 20);
  if (!table.ok()) return 0;
#ifdef TRIBUTARY_PLANT_CRASH
  // Reachable only with a file that has a matching symbol, section and segment.
  if ((*table)->row_count() > 0 && (*table)->Find((*table)->row_address(0))->name.size() == 5) abort();
#endif
  auto again = DecodeSymbolTable(EncodeSymbolTable(**table));
  if (!again.ok() || (*again)->bytes() != (*table)->bytes()) abort();
  return 0;
}
