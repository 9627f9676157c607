#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// A table in the form in which it is sent and stored: columns of LEB128 numbers, mostly differences. zstd compresses
// them to a twentieth of the debug information that they came from (docs/symbol-table.md).
constexpr size_t kEncodedSymbolsMax = 1u << 30;

std::string EncodeSymbolTable(const SymbolTable& table);
// Checks every id. InvalidArgument if the bytes are not a table, or are inconsistent; the input may be hostile.
// Unimplemented for a newer version. Takes about three times the memory of the bytes.
absl::StatusOr<std::shared_ptr<const SymbolTable>> DecodeSymbolTable(std::string_view bytes);

}  // namespace tributary
