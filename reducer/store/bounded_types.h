#pragma once

#include <cstddef>
#include <set>

#include "profile/accounting.h"

namespace tributary::store {

// Limits how many sample types a list of totals distinguishes, because types come from the network. Built-in types and
// the first `types_max` other types keep their names. Samples of all other types count as kUndefinedType. All totals
// that go through one object agree on the types that keep their names, so captured = stored + lost still holds for each
// type. Use an object on one thread.
class BoundedTypes {
 public:
  explicit BoundedTypes(size_t types_max = kSampleTypesMax) : types_max_(types_max) {}

  // Keeps the names of the types that these totals already have, even beyond `types_max`.
  void Keep(const NamedSampleCounts& counts);
  void Keep(const NamedAccounting& accounting);

  // Returns `type`, or kUndefinedType if `type` is beyond the limit.
  const SampleTypeInfo& Bound(const SampleTypeInfo& type);
  NamedSampleCounts Bound(const NamedSampleCounts& counts);
  NamedAccounting Bound(const NamedAccounting& accounting);

 private:
  const size_t types_max_;
  std::set<SampleTypeInfo> kept_;  // neither kUndefinedType nor built-in types
};

}  // namespace tributary::store
