#include <cstdint>
#include <cstdlib>

#include "symbols/elf_symbols.h"

// The symbols of an executable that may be anything: what is read must make a table that stands its own checks.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  auto file = ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto id = (*file)->Identity();
  if (!id.ok()) return 0;
  auto table = ReadElfSymbols(**file, *id, 1 << 20);
  if (!table.ok()) return 0;
#ifdef TRIBUTARY_PLANT_CRASH
  // Within reach only of a file whose symbol, section and segment agree.
  if ((*table)->size() > 0 && (*table)->at(0).name.size() == 5) abort();
#endif
  auto again = SymbolTable::Decode((*table)->Encode());
  if (!again.ok() || (*again)->size() != (*table)->size()) abort();
  return 0;
}
