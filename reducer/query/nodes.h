#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "reducer/query/query_request.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns one row per node, sorted by host name. A node that has data in several shards has one row. If a shard cannot
// be read, returns the store's error. Uses only the function is_cancelled of the request.
absl::StatusOr<std::vector<store::NodeStatus>> ListNodes(store::Store& store, const QueryRequest& request);

}  // namespace tributary
