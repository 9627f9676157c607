#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace tributary {

// A mounted cgroup hierarchy, read through the file system. Calls block, so a worker must make them. A cgroup's id is
// its directory's inode number. The kernel numbers the cgroups of one hierarchy in ascending order (kernfs_new_node, 64
// bits), so an id is never reused while the machine is up.

// Returns the mount point of the cgroup v2 hierarchy: the top, or a directory next to the v1 hierarchies.
std::string UnifiedRoot(const std::string& cgroup_root);
// Returns the directory of a controller's v1 hierarchy: "memory" → "…/memory". Returns "" if `controller` is empty.
std::string LegacyRoot(const std::string& cgroup_root, std::string_view controller);

// Returns 0 if the cgroup is gone.
uint64_t CgroupIdOf(const std::string& directory);

// Returns the id of every cgroup of a hierarchy → its path in the hierarchy. Returns at most `directories_max` cgroups,
// the ones nearest to the root. A walk costs some 30 µs per cgroup, because the kernel also lists the files in the
// cgroup.
absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max);

}  // namespace tributary
