#pragma once

#include <string>

#include "base/varint.h"
#include "profile/accounting.h"

namespace tributary::intake {

// An accounting as segments store it (docs/spool.md): numbers in LEB128, for all types together. If there are samples
// of other types than CPU, their part of these numbers follows.

void AppendAccounting(std::string& out, const Accounting& accounting);
// Returns false if malformed. A reason of a later release counts as kBadRecord.
bool ReadAccounting(VarintReader& reader, Accounting* out);

bool HasTypes(const Accounting& accounting, const SampleCounts& samples);
// `samples`: of the batch with this accounting.
void AppendTypes(std::string& out, const Accounting& accounting, const SampleCounts& samples);
// Splits by type the sums of ReadAccounting and the record's number of samples. Returns false if malformed, or if a
// type has more than the sum of all types.
bool ReadTypes(VarintReader& reader, Accounting* accounting, SampleCounts* samples);

}  // namespace tributary::intake
