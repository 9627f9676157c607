#pragma once

#include "symbols/symbol_table.h"
#include "symbols/table_file.h"

namespace tributary {

// Decides which of two symbol tables of one executable a reducer keeps. Returns true if it is `fresh`, which has just
// arrived. Names that cannot be trusted are of no use, however many there are. So the origin comes first.
bool Replaces(const TableFile& fresh, const TableFile& known);

// Returns false if the two tables of one executable are of different files. Tables of the same code agree on the
// addresses where functions begin, whatever the names. If one of them has few functions, nothing is concluded.
bool AreOfTheSameCode(const SymbolTable& a, const SymbolTable& b);

}  // namespace tributary
