#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"
#include "symbols/symbol_table.h"

namespace tributary {

// The format of a symbol table file (.tsym): a header of 72 bytes, optional notes, then the encoded table as one zstd
// frame (docs/symbol-table.md). Reducers store tables in this format. `tributary symbols push` sends tables in this
// format, without notes.
constexpr size_t kTableFileHeaderBytes = 72;
constexpr size_t kTableFileNotesMax = 2048;
// The most bytes that ParseTableFileHeader reads.
constexpr size_t kTableFileBeginBytes = kTableFileHeaderBytes + 8 + kTableFileNotesMax;
constexpr std::string_view kTableFileMagic = "TSYMFILE";

struct TableFile {
  ExecutableId id;
  SymbolSource source = SymbolSource::kNone;
  uint8_t origin = 0;      // where the table came from; only the reducer uses it
  bool contested = false;  // another table with the same id describes other code
  uint64_t functions = 0;
  uint64_t raw_bytes = 0;  // size of the encoded table before compression
  uint64_t checksum = 0;   // XXH3-64 of the encoded table
  UnixNs stored_at;
  // Where the table came from, in detail (reducer/symbolizer/table_notes.h); only the reducer uses it. At most
  // kTableFileNotesMax bytes (CHECKed). They are in a skippable zstd frame, so earlier releases also read the file.
  std::string notes;
};

// Returns the header's values for a table. `encoded`: the result of EncodeSymbolTable() for this table.
TableFile DescribeTable(const SymbolTable& table, std::string_view encoded);
std::string TableFileHeader(const TableFile& file);  // with the notes
// Parses the header. `bytes`: at least the first kTableFileBeginBytes of the file, or the whole file. DataLoss if the
// file has no valid header. Notes that are damaged or too long are left out.
absl::StatusOr<TableFile> ParseTableFileHeader(std::string_view bytes);
// Returns the encoded table. DataLoss if the table does not match the header. ResourceExhausted if the header states
// more than kEncodedSymbolsMax bytes. Does not check that the result is a symbol table: DecodeSymbolTable() checks
// this.
absl::StatusOr<std::string> ReadTableFile(std::string_view bytes);
// Returns the bytes after the header and the notes.
std::string_view TableFileBody(std::string_view bytes);
std::string PackTableFile(const TableFile& file, std::string_view encoded, int zstd_level);

}  // namespace tributary
