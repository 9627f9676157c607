#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "symbols/symbol_table.h"

namespace tributary {

// A table as it travels and rests: columns of LEB128 numbers, differences mostly, which zstd makes a twentieth of the
// debug information that they came from (docs/symbol-table.md).
constexpr size_t kEncodedSymbolsMax = 1u << 30;

std::string EncodeSymbolTable(const SymbolTable& table);
// Every id is checked. InvalidArgument: not a table, or one that lies; input is hostile. Unimplemented: of a newer
// version. Takes about three times the memory of the bytes.
absl::StatusOr<std::shared_ptr<const SymbolTable>> DecodeSymbolTable(std::string_view bytes);

}  // namespace tributary
