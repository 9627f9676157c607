#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Types that samples of any shard have: what nobody collects is not among them.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypes(store::Store& store);

// Types that samples in the request's range have. It reads no further than to the first sample of the last type that
// the store knows: costs as much as a timeline only where the range lacks one of them.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypesInRange(store::Store& store, const QueryRequest& request);

// The type that a request names, as "name:unit:sum" (of a gauge "name:unit:last"), "name:unit" or "name", if no other
// type has what is said. Names of our own types always mean these, even if nobody collects them.
// InvalidArgument: no sample has the type, or several types have the name; the message lists what to ask for.
absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request);

}  // namespace tributary
