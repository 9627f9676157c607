#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "symbols/symbol_table.h"

namespace tributary {

// A symbol table as a file (.tsym): a header of 72 bytes, then the encoded table as one zstd frame
// (docs/symbol-table.md). A reducer stores tables in this form, and `tributary symbols push` sends it to the reducer.
constexpr size_t kTableFileHeaderBytes = 72;
constexpr std::string_view kTableFileMagic = "TSYMFILE";

struct TableFile {
  ExecutableId id;
  SymbolSource source = SymbolSource::kNone;
  uint8_t origin = 0;      // origin of the table; only the reducer uses it
  bool contested = false;  // another table with this id describes other code
  uint64_t functions = 0;
  uint64_t raw_bytes = 0;  // of the encoded table
  uint64_t checksum = 0;   // XXH3-64 of the encoded table
  UnixNs stored_at;
};

// Returns the header data for a table's file. `encoded` is the result of EncodeSymbolTable().
TableFile DescribeTable(const SymbolTable& table, std::string_view encoded);
std::string TableFileHeader(const TableFile& file);
// DataLoss if there is no such header. `bytes` may be the whole file.
absl::StatusOr<TableFile> ParseTableFileHeader(std::string_view bytes);
// Returns the encoded table. DataLoss if it does not match the header; ResourceExhausted if the header states more than
// kEncodedSymbolsMax. Only DecodeSymbolTable() checks that the result is a table.
absl::StatusOr<std::string> ReadTableFile(std::string_view bytes);
std::string PackTableFile(const TableFile& file, std::string_view encoded, int zstd_level);

}  // namespace tributary
