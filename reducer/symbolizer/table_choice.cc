#include "reducer/symbolizer/table_choice.h"

#include <algorithm>
#include <tuple>

#include "reducer/symbolizer/symbol_files.h"

namespace tributary {
namespace {

// The number of functions that are compared to see whether two tables are of the same code.
constexpr uint32_t kComparedFunctionsMax = 1024;

}  // namespace

bool Replaces(const TableFile& fresh, const TableFile& known) {
  auto worth = [](const TableFile& table) {
    return std::tuple(SymbolOriginRank(static_cast<SymbolOrigin>(table.origin), table.source),
                      SymbolSourceRank(table.source), table.functions);
  };
  if (worth(fresh) != worth(known)) return worth(fresh) > worth(known);
  return fresh.origin == static_cast<uint8_t>(SymbolOrigin::kUpload) && fresh.checksum != known.checksum;
}

bool AreOfTheSameCode(const SymbolTable& a, const SymbolTable& b) {
  const SymbolTable& few = a.function_count() <= b.function_count() ? a : b;
  const SymbolTable& many = &few == &a ? b : a;
  constexpr uint32_t kFew = 8;
  if (few.function_count() < kFew) return true;
  const uint32_t rows = static_cast<uint32_t>(few.row_count());
  const uint32_t step = std::max<uint32_t>(rows / kComparedFunctionsMax, 1);
  uint32_t looked_at = 0, known = 0;
  for (uint32_t row = 0; row < rows; row += step) {
    const auto function = few.Find(few.row_address(row));
    if (!function) continue;
    const auto other = many.Find(function->address);
    ++looked_at;
    known += other && other->address == function->address ? 1 : 0;
  }
  return looked_at < kFew || known >= looked_at / 2;
}

}  // namespace tributary
