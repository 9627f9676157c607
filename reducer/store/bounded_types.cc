#include "reducer/store/bounded_types.h"

#include <algorithm>

namespace tributary::store {
namespace {

// Returns true if the type always keeps its name. The default value is the key of process events.
bool IsUnlimited(const SampleTypeInfo& type) {
  return type == kUndefinedType || type == SampleTypeInfo{} ||
         std::any_of(kSampleTypes.begin(), kSampleTypes.end(), [&](const SampleTypeRow& row) {
           return row.name == type.name && row.unit == type.unit && row.aggregation == type.aggregation;
         });
}

}  // namespace

void BoundedTypes::Keep(const NamedSampleCounts& counts) {
  for (const auto& [type, samples] : counts.parts()) {
    if (!IsUnlimited(type)) kept_.insert(type);
  }
}

void BoundedTypes::Keep(const NamedAccounting& accounting) {
  Keep(accounting.captured);
  for (const NamedSampleCounts& lost : accounting.lost) Keep(lost);
}

const SampleTypeInfo& BoundedTypes::Bound(const SampleTypeInfo& type) {
  if (IsUnlimited(type) || kept_.contains(type)) return type;
  if (kept_.size() >= types_max_) return kUndefinedType;
  return *kept_.insert(type).first;
}

NamedSampleCounts BoundedTypes::Bound(const NamedSampleCounts& counts) {
  NamedSampleCounts bounded = counts.cpu();
  for (const auto& [type, samples] : counts.parts()) bounded.Add(Bound(type), samples);
  return bounded;
}

NamedAccounting BoundedTypes::Bound(const NamedAccounting& accounting) {
  NamedAccounting bounded{.captured = Bound(accounting.captured), .idle = accounting.idle};
  for (size_t i = 0; i < kLossReasonCount; ++i) bounded.lost[i] = Bound(accounting.lost[i]);
  return bounded;
}

}  // namespace tributary::store
