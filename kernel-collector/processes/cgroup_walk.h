#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"

namespace tributary {

// A mounted cgroup hierarchy as a file system shows it. Calls block: a worker's. A cgroup's id is its directory's inode
// number; the kernel numbers the cgroups of one hierarchy on and on (kernfs_new_node, 64 bits), so that no id comes
// again while the machine is up.

// Where the hierarchy of cgroup v2 is mounted: at the top, or beside those of v1.
std::string UnifiedRoot(const std::string& cgroup_root);
// Where a controller's v1 hierarchy is: "memory" → "…/memory". "" for no controller.
std::string LegacyRoot(const std::string& cgroup_root, std::string_view controller);

// 0 when it is gone.
uint64_t CgroupIdOf(const std::string& directory);

// The id of every cgroup of a hierarchy → its path in it. At most `directories_max`, those nearest to the root. Costs
// some 30 µs a cgroup: the kernel lists the files in it, too.
absl::flat_hash_map<uint64_t, std::string> WalkCgroups(const std::string& root, size_t directories_max);

}  // namespace tributary
