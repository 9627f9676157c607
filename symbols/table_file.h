#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "symbols/symbol_table.h"

namespace tributary {

// A symbol table as a file (.tsym): 72 bytes that say what it is, then the encoded table as one zstd frame
// (docs/symbol-table.md). How a reducer keeps tables, and what `tributary symbols push` sends it.
constexpr size_t kTableFileHeaderBytes = 72;
constexpr std::string_view kTableFileMagic = "TSYMFILE";

struct TableFile {
  ExecutableId id;
  SymbolSource source = SymbolSource::kNone;
  uint8_t origin = 0;      // who told it; the reducer's affair
  bool contested = false;  // another table with this id is not of the same code
  uint64_t functions = 0;
  uint64_t raw_bytes = 0;  // of the encoded table
  uint64_t checksum = 0;   // XXH3-64 of the encoded table
  UnixNs stored_at;
};

// What a table's file begins with; `encoded` is EncodeSymbolTable's.
TableFile DescribeTable(const SymbolTable& table, std::string_view encoded);
std::string TableFileHeader(const TableFile& file);
// DataLoss: no such header. `bytes` may be all of the file.
absl::StatusOr<TableFile> ParseTableFileHeader(std::string_view bytes);
// The encoded table. DataLoss: it is not what the header says; ResourceExhausted: it says more than kEncodedSymbolsMax.
// Whether it is a table at all is DecodeSymbolTable's to say.
absl::StatusOr<std::string> ReadTableFile(std::string_view bytes);
std::string PackTableFile(const TableFile& file, std::string_view encoded, int zstd_level);

}  // namespace tributary
