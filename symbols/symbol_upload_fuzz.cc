#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include "base/zstd.h"
#include "symbols/symbol_codec.h"
#include "symbols/table_file.h"

namespace {

using tributary::SymbolTable;

// Looks up every row of a table. Any bytes must be harmless, and the walk over the frames must end.
size_t LookUpAll(const SymbolTable& table) {
  size_t frames = 0;
  for (uint32_t row = 0; row < table.row_count(); ++row) {
    const uint32_t found = table.FindRow(table.row_address(row));
    if (found == SymbolTable::kNoRow) continue;
    table.ForEachFrame(found, [&](const SymbolTable::Frame& frame) {
      frames += frame.name.size() + frame.file.size() < (size_t{1} << 40) ? 1 : 0;
      return frames < 100'000;
    });
    (void)table.Find(table.row_address(row));
  }
  return frames;
}

// Looks up many addresses at once. FindRows takes 16 addresses of one segment together, and others one by one. In any
// bytes, it must find the same rows as FindRow. StartOf must be harmless for the nodes of these rows.
void LookUpTogether(const SymbolTable& table) {
  constexpr uint32_t kRowsMax = 64, kTogether = 16;
  std::vector<uint64_t> addresses;
  for (uint32_t row = 0; row < std::min<size_t>(table.row_count(), kRowsMax); ++row) {
    for (uint64_t i = 0; i < kTogether; ++i) addresses.push_back(table.row_address(row) + i);
  }
  const uint64_t first = addresses.empty() ? 0 : addresses[0];
  for (uint64_t i = 0; i < 2 * kTogether; ++i) {
    addresses.insert(addresses.end(), {first + i, 0, UINT64_MAX, first - 1 - i});  // the last one is below the base
  }
  std::vector<uint32_t> rows(addresses.size());
  table.FindRows(addresses, rows);
  for (size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] != table.FindRow(addresses[i])) abort();
    if (!tributary::IsFrameKind(static_cast<uint32_t>(table.KindOf(addresses[i])))) abort();
    if (rows[i] == SymbolTable::kNoRow) continue;
    (void)table.StartOf(table.node(rows[i]));
  }
  for (uint32_t node : {0u, static_cast<uint32_t>(table.node_count()), UINT32_MAX}) (void)table.StartOf(node);
}

void DecodeAndCheck(std::string_view bytes) {
  auto table = tributary::DecodeSymbolTable(bytes);
  if (!table.ok()) return;
  // An accepted table keeps the promises of a table: rows ascend, are found, and survive a round trip.
  const SymbolTable& t = **table;
  for (uint32_t row = 0; row < t.row_count(); ++row) {
    if (row > 0 && t.row_address(row) < t.row_address(row - 1)) abort();
    const uint32_t found = t.FindRow(t.row_address(row));
    if (found != row && found != SymbolTable::kNoRow && t.row_address(found) != t.row_address(row)) abort();
  }
  LookUpAll(t);
  LookUpTogether(t);
#ifdef TRIBUTARY_PLANT_CRASH
  // Reachable only with a table that decodes completely.
  if (t.row_count() == 3 && t.source() == tributary::SymbolSource::kKallsyms) abort();
#endif
  auto again = tributary::DecodeSymbolTable(tributary::EncodeSymbolTable(t));
  if (!again.ok() || (*again)->bytes() != t.bytes()) abort();
}

}  // namespace

// The path of an upload in the reducer: zstd with the size that the sender states (here: the first two bytes), then the
// table; or a table's file, as it is PUT. The bytes are also tried as a table, because a fuzzer cannot guess a
// compressed one, and as the flat form that is mapped from the disk.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view bytes(reinterpret_cast<const char*>(data), size);
  DecodeAndCheck(bytes);
  if (auto flat = SymbolTable::FromBytes(std::string(bytes)); flat.ok()) {
    LookUpAll(**flat);
    LookUpTogether(**flat);
    (void)tributary::EncodeSymbolTable(**flat);
  }
  if (auto encoded = tributary::ReadTableFile(bytes); encoded.ok()) DecodeAndCheck(*encoded);
  if (size < 2) return 0;
  size_t raw_size = data[0] | data[1] << 8;
  auto raw = tributary::ZstdDecompress(bytes.substr(2), raw_size);
  if (raw.ok()) DecodeAndCheck(*raw);
  return 0;
}
