#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "reducer/store/session_totals.h"

namespace tributary::store {

// The columns of numbers hold all types together; this is what of them is of types other than CPU, "" when nothing is.
// Of each: name, unit, aggregation, captured, stored, closed_captured, and losses by reason.
std::string EncodeSessionTypes(const SessionTotals& totals);
// Splits what the other columns told. DataLoss: not what EncodeSessionTypes writes.
absl::Status DecodeSessionTypes(std::string_view bytes, SessionTotals* totals);

// Of a column of losses, all types together.
std::string EncodeLosses(const NamedAccounting& accounting);
void DecodeLosses(std::string_view bytes, NamedAccounting* accounting);

}  // namespace tributary::store
