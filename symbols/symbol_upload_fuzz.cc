#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/zstd.h"
#include "symbols/symbol_table.h"

namespace {

void DecodeAndCheck(std::string_view bytes) {
  auto table = tributary::SymbolTable::Decode(bytes);
  if (!table.ok()) return;
  // What was accepted keeps the table's promises: ranges ascend, are found, and stand a round trip.
  const tributary::SymbolTable& t = **table;
  uint64_t previous = 0;
  for (uint32_t i = 0; i < t.size(); ++i) {
    auto match = t.at(i);
    if (i > 0 && match.address <= previous) abort();
    previous = match.address;
    auto found = t.Find(match.address);
    if (!found || found->index != i || found->name.empty()) abort();
  }
#ifdef TRIBUTARY_PLANT_CRASH
  // Within reach only of a table that decodes whole: header, three columns and pool.
  if (t.size() == 3 && t.source() == tributary::SymbolSource::kKallsyms) abort();
#endif
  auto again = tributary::SymbolTable::Decode(t.Encode());
  if (!again.ok() || (*again)->size() != t.size()) abort();
}

}  // namespace

// What an upload goes through in the reducer: zstd with the size that the sender states (here: the first two bytes),
// then the table. The bytes are tried as a table too, as a fuzzer cannot guess a compressed one.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  DecodeAndCheck(bytes);
  if (size < 2) return 0;
  size_t raw_size = data[0] | data[1] << 8;
  auto raw = tributary::ZstdDecompress(bytes.substr(2), raw_size);
  if (raw.ok()) DecodeAndCheck(*raw);
  return 0;
}
