#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "reducer/store/session_totals.h"

namespace tributary::store {

// The session table's other columns hold numbers of all sample types together. This column holds the numbers of each
// type other than CPU; it is "" if there are none. For each type: name, unit, aggregation, captured, stored,
// closed_captured, and losses by reason.
std::string EncodeSessionTypes(const SessionTotals& totals);
// Splits the counts of the other columns by type. Returns DataLoss if EncodeSessionTypes did not write `bytes`.
absl::Status DecodeSessionTypes(std::string_view bytes, SessionTotals* totals);

// Encode and decode a column of losses, all types together.
std::string EncodeLosses(const NamedAccounting& accounting);
void DecodeLosses(std::string_view bytes, NamedAccounting* accounting);

}  // namespace tributary::store
