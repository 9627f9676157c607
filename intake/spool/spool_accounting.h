#pragma once

#include <string>

#include "base/varint.h"
#include "profile/accounting.h"

namespace tributary::intake {

// Writes and reads an Accounting in the format of segments (docs/spool.md). It consists of LEB128 numbers: first the
// sums over all sample types, then the numbers of process events and of each sample type other than CPU.

void AppendAccounting(std::string& out, const Accounting& accounting);
// Returns false if the bytes are malformed. Samples that were lost for an unknown reason of a later release count as
// kBadRecord.
bool ReadAccounting(VarintReader& reader, Accounting* out);

bool HasTypes(const Accounting& accounting, const SampleCounts& samples);
// `samples`: the samples and process events of the batch with this accounting.
void AppendTypes(std::string& out, const Accounting& accounting, const SampleCounts& samples);
// Reads the numbers of each type. Splits the sums in `accounting` (from ReadAccounting) and the record's number of
// samples into one count for each type, and adds the process events. Returns false if the bytes are malformed, or if a
// type has more samples than all types together.
bool ReadTypes(VarintReader& reader, Accounting* accounting, SampleCounts* samples);

}  // namespace tributary::intake
