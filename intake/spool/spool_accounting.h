#pragma once

#include <string>

#include "base/varint.h"
#include "profile/accounting.h"

namespace tributary::intake {

// An accounting as segments hold it (docs/spool.md): numbers in LEB128, all types together; and, where there are
// samples of other types than CPU, what of it is theirs.

void AppendAccounting(std::string& out, const Accounting& accounting);
// False: malformed. A reason of a later release counts as kBadRecord.
bool ReadAccounting(VarintReader& reader, Accounting* out);

bool HasTypes(const Accounting& accounting, const SampleCounts& samples);
// `samples`: of the batch whose accounting it is.
void AppendTypes(std::string& out, const Accounting& accounting, const SampleCounts& samples);
// Splits what ReadAccounting, and the record's number of samples, say of all types together. False: malformed, or more
// of a type than of all.
bool ReadTypes(VarintReader& reader, Accounting* accounting, SampleCounts* samples);

}  // namespace tributary::intake
