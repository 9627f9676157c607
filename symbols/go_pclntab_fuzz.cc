#include <cstdint>
#include <cstdlib>

#include "symbols/go_pclntab.h"
#include "symbols/symbol_codec.h"

// The input is a Go program. It may contain anything. A symbol table made of Go's table must pass its own checks.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tributary;
  auto file = ElfFile::FromMemory({reinterpret_cast<const char*>(data), size});
  if (!file.ok()) return 0;
  auto id = (*file)->Identity();
  if (!id.ok()) return 0;
  SymbolTableBuilder builder;
  auto counts = AddGoSymbols(**file, builder);
  if (!counts.ok()) return 0;
#ifdef TRIBUTARY_PLANT_CRASH
  // Reachable only with a file that has a matching table, module and tree of calls.
  if (counts->inlined == 3 && counts->malformed == 0) abort();
#endif
  auto table = builder.Build(*id, SymbolSource::kPclntab);
  for (uint32_t row = 0; row < table->row_count(); ++row) {
    const uint32_t found = table->FindRow(table->row_address(row));
    if (found != SymbolTable::kNoRow && found != row) abort();
  }
  auto again = DecodeSymbolTable(EncodeSymbolTable(*table));
  if (!again.ok() || (*again)->bytes() != table->bytes()) abort();
  return 0;
}
