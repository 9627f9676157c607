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

// The type that a request means, be it one of ours that nobody collects: ours come first where only a name is told.
// InvalidArgument: one that no sample has, or a name of several; the message says which there are.
absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request);

}  // namespace tributary
