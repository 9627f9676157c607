#pragma once

#include <string>

#include "base/varint.h"
#include "profile/accounting.h"

namespace tributary::intake {

// An accounting in the form in which segments store it (docs/spool.md): LEB128 numbers, first the sums over all sample
// types. If there are samples of other types than CPU, the numbers of each such type follow.

void AppendAccounting(std::string& out, const Accounting& accounting);
// Returns false if malformed. A reason of a later release counts as kBadRecord.
bool ReadAccounting(VarintReader& reader, Accounting* out);

bool HasTypes(const Accounting& accounting, const SampleCounts& samples);
// `samples`: of the batch with this accounting.
void AppendTypes(std::string& out, const Accounting& accounting, const SampleCounts& samples);
// Reads the numbers by type. Splits the sums that ReadAccounting read, and the record's number of samples, by type.
// Returns false if malformed, or if a type has more than the sum of all types.
bool ReadTypes(VarintReader& reader, Accounting* accounting, SampleCounts* samples);

}  // namespace tributary::intake
