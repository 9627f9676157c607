#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns the types that samples of any shard have. A type that was never collected is not among them.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypes(store::Store& store);

// Returns the types that samples in the request's range have. It reads only up to the first sample of the last type
// that the store knows. So it costs as much as a timeline only if the range lacks one of these types.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypesInRange(store::Store& store, const QueryRequest& request);

// Returns the type that a request names as "name:unit:sum" (for a gauge "name:unit:last"), "name:unit" or "name", if
// only one type matches. Names of our own types always mean these types, even if they are not collected.
// InvalidArgument: no sample has the type, or several types have the name; the message lists the types to ask for.
absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request);

}  // namespace tributary
