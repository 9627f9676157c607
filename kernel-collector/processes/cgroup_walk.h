#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace tributary {

// These functions read a mounted cgroup hierarchy through the file system. They block, so call them only on a worker. A
// cgroup's id is the inode number of its directory. The kernel numbers the cgroups of one hierarchy in ascending order
// (kernfs_new_node, 64 bits), so an id is never reused while the machine is up.

// Returns the directory of the cgroup v2 hierarchy: `cgroup_root`, or its subdirectory "unified" next to the v1
// hierarchies.
std::string UnifiedRoot(const std::string& cgroup_root);
// Returns the directory of a controller's v1 hierarchy: "memory" → "…/memory". Returns "" if `controller` is empty.
std::string LegacyRoot(const std::string& cgroup_root, std::string_view controller);

// Returns the id of the cgroup, or 0 if the cgroup was removed.
uint64_t CgroupIdOf(const std::string& directory);

// Returns a map from the id of every cgroup of a hierarchy to the cgroup's path in the hierarchy. The map has at most
// `directories_max` cgroups, the ones nearest to the root. A walk takes about 30 µs per cgroup, because the kernel also
// lists the files of each cgroup.
absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max);

}  // namespace tributary
