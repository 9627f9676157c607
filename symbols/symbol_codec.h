#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// Encodes symbol tables for sending and storing (docs/symbol-table.md). An encoded table consists of columns of LEB128
// numbers, which are mostly differences. After compression with zstd it has a twentieth of the size of the debug
// information from which it was made.
constexpr size_t kEncodedSymbolsMax = 1u << 30;

std::string EncodeSymbolTable(const SymbolTable& table);
// Decodes a table. The input may be hostile: every id is checked. InvalidArgument if the bytes are not a table or are
// inconsistent. Unimplemented if a newer release has encoded the table. Needs about three times the memory of `bytes`.
absl::StatusOr<std::shared_ptr<const SymbolTable>> DecodeSymbolTable(std::string_view bytes);

}  // namespace tributary
