#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "reducer/store/session_totals.h"

namespace tributary::store {

// Encodes the column `types` of the session table. The table's other columns contain totals over all sample types. The
// column `types` contains for each type other than CPU: name, unit, aggregation, captured, stored, closed_captured, and
// losses by reason. It is "" if there are no such types.
std::string EncodeSessionTypes(const SessionTotals& totals);
// Splits the totals in `totals`, which come from the other columns, by type. Returns DataLoss if `bytes` is malformed.
absl::Status DecodeSessionTypes(std::string_view bytes, SessionTotals* totals);

// The bytes of a session's columns: an expression of SQL, and a function with the same result. The index has the id,
// too.
inline constexpr std::string_view kSessionBytes =
    "2 * length(id) + length(boot_id) + length(lost) + length(endings) + length(types)";
constexpr uint64_t SessionBytes(std::string_view id, std::string_view boot_id, std::string_view lost,
                                std::string_view endings, std::string_view types) {
  return 2 * id.size() + boot_id.size() + lost.size() + endings.size() + types.size();
}

// Encode and decode the column `lost`: the lost samples of all types together, by reason.
std::string EncodeLosses(const NamedAccounting& accounting);
void DecodeLosses(std::string_view bytes, NamedAccounting* accounting);

}  // namespace tributary::store
