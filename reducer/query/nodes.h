#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "reducer/store/store.h"

namespace tributary {

// One a node, over all shards; by host name. Errors: the store's.
absl::StatusOr<std::vector<store::NodeStatus>> ListNodes(store::Store& store);

}  // namespace tributary
