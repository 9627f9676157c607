#pragma once

#include <cstddef>
#include <set>

#include "profile/accounting.h"

namespace tributary::store {

// Types come from the network. This bounds how many of them a list of totals tells apart: the first `types_max` that
// are asked for keep their names, as our own types do; samples of all others are of kUndefinedType. Totals that go
// through one object agree on which these are, so that captured = stored + lost still holds for each type. One thread.
class BoundedTypes {
 public:
  explicit BoundedTypes(size_t types_max = kSampleTypesMax) : types_max_(types_max) {}

  // These have their names already.
  void Keep(const NamedSampleCounts& counts);
  void Keep(const NamedAccounting& accounting);

  // `type`, or kUndefinedType.
  const SampleTypeInfo& Bound(const SampleTypeInfo& type);
  NamedSampleCounts Bound(const NamedSampleCounts& counts);
  NamedAccounting Bound(const NamedAccounting& accounting);

 private:
  const size_t types_max_;
  std::set<SampleTypeInfo> kept_;  // without kUndefinedType and our own
};

}  // namespace tributary::store
