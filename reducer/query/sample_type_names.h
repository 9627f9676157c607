#pragma once

#include <set>

#include "absl/status/statusor.h"
#include "profile/sample_types.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Types that samples of any shard have: what nobody collects is not among them.
absl::StatusOr<std::set<SampleTypeInfo>> ListSampleTypes(store::Store& store);

// The type that a request means, be it one of ours that nobody collects: ours come first where only a name is told.
// InvalidArgument: one that no sample has, or a name of several; the message says which there are.
absl::StatusOr<SampleTypeInfo> FindSampleType(store::Store& store, const QueryRequest& request);

}  // namespace tributary
