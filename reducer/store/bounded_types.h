#pragma once

#include <cstddef>
#include <set>

#include "profile/accounting.h"

namespace tributary::store {

// Limits how many sample types a list of totals distinguishes, because senders may invent types without limit. Built-in
// types, process events and the first `types_max` other types keep their names. Samples of all other types count as
// kUndefinedType. Use one object for all totals of a session: then the same types keep their names in all of them, and
// captured = stored + lost holds for each type. Use an object on one thread.
class BoundedTypes {
 public:
  explicit BoundedTypes(size_t types_max = kSampleTypesMax) : types_max_(types_max) {}

  // Adds the types in these totals to the types that keep their names, even beyond `types_max`.
  void Keep(const NamedSampleCounts& counts);
  void Keep(const NamedAccounting& accounting);

  // Returns `type` if it keeps its name, or kUndefinedType if it is new and the limit is reached.
  const SampleTypeInfo& Bound(const SampleTypeInfo& type);
  NamedSampleCounts Bound(const NamedSampleCounts& counts);
  NamedAccounting Bound(const NamedAccounting& accounting);

 private:
  const size_t types_max_;
  std::set<SampleTypeInfo> kept_;  // neither kUndefinedType, nor built-in types, nor the key of process events
};

}  // namespace tributary::store
