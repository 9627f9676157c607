#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns the types of the stored samples, over all shards. May also return types whose samples have expired.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypes(store::Store& store, const QueryRequest& request);

// Returns the types of the samples in the request's range. It stops reading when it has found each type that the store
// knows. So it reads the whole range, as a timeline does, only if the range has no samples of one of these types.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypesInRange(store::Store& store, const QueryRequest& request);

// Returns the type that `request.type` names. Its forms are "name:unit:sum" (for a gauge "name:unit:last"), "name:unit"
// and "name". Names of built-in types always refer to these types, even if the store has no samples of them.
// InvalidArgument: the store has no samples of the type, or several types match; the message lists the types that can
// be requested.
absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request);

}  // namespace tributary
