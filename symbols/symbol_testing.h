#pragma once

#include <vector>

#include "symbols/symbol_table.h"

namespace tributary {

// Returns a table's functions in order of addresses, for tests.
inline std::vector<SymbolTable::Match> FunctionsOf(const SymbolTable& table) {
  std::vector<SymbolTable::Match> functions;
  uint32_t last = 0;
  for (uint32_t row = 0; row < table.row_count(); ++row) {
    const auto match = table.Find(table.row_address(row));
    if (match && match->node != last) functions.push_back(*match);
    last = match ? match->node : 0;
  }
  return functions;
}

}  // namespace tributary
