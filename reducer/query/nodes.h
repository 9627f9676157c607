#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "reducer/store/store.h"

namespace tributary {

// Returns one row per node, merged over all shards, sorted by host name. Returns the store's errors.
absl::StatusOr<std::vector<store::NodeStatus>> ListNodes(store::Store& store);

}  // namespace tributary
