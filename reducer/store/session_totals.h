#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "profile/model.h"

namespace tributary::store {

// What the store knows of a source of samples beside its dictionary; one row. Types of samples go by their names: a
// source may give a number to another type with each batch.
struct SessionTotals {
  uint64_t durable_sequence = 0;
  NamedAccounting accounting;  // as told with batch durable_sequence
  NamedSampleCounts stored;
  uint64_t wire_bytes = 0;
  uint64_t endings[kEndingCount] = {};
  int64_t closed_reason = kOpen;  // the LossReason of what is missing once the session has ended without saying so
  // What it answers for of what its collector captured, once it is closed. `accounting.captured` then says no more:
  // what it told last as on its way may have gone to another session.
  NamedSampleCounts closed_captured;

  static constexpr int64_t kOpen = -1;
  NamedSampleCounts known() const { return stored + accounting.TotalLost(); }  // whose fate is
  // Of a closed session: what is neither stored nor told as lost is lost for its reason. Whatever still comes of it
  // makes that less.
  NamedAccounting WithClosing() const;
};

// The columns of numbers hold all types together; this is what of them is of types other than CPU, "" when nothing is.
// Of each: name, unit, captured, stored, closed_captured, and losses by reason.
std::string EncodeSessionTypes(const SessionTotals& totals);
// Splits what the other columns told. DataLoss: not what EncodeSessionTypes writes.
absl::Status DecodeSessionTypes(std::string_view bytes, SessionTotals* totals);

// Of a column of losses, all types together.
std::string EncodeLosses(const NamedAccounting& accounting);
void DecodeLosses(std::string_view bytes, NamedAccounting* accounting);

// What a batch's counts are called by names. Types that the batch does not define are one: kUndefinedType.
template <typename Counts, typename Name>
NamedSampleCounts Named(const Counts& counts, Name&& name) {
  NamedSampleCounts named = counts.cpu();
  for (const auto& [type, samples] : counts.parts()) named.Add(name(type), samples);
  return named;
}
inline const SampleTypeInfo kUndefinedType{"unknown", "unknown"};

}  // namespace tributary::store
