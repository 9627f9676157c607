#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace tributary {

// If a program needs more memory than the limit of its cgroup, the kernel kills it without a message. So
// kernel-collector compares its limit with its need before it allocates BPF maps. They count as memory of its cgroup
// from Linux 5.11 (Machine::ChargesMapsToCgroup).

// Returns the smallest memory limit of a process's cgroup and of the cgroups around it. `proc_cgroup`: the content of
// /proc/PID/cgroup. `cgroup_root`: where the cgroups of version 1 or 2 are mounted, usually /sys/fs/cgroup. In a
// container, the cgroup's path may not exist there: then the limit at the root of the mount is used. Returns nullopt if
// there is no limit, or if it cannot be read.
std::optional<uint64_t> MemoryLimit(std::string_view proc_cgroup, const std::string& cgroup_root);

// Returns the memory without which kernel-collector cannot run on a machine with this number of CPUs: BPF maps, rings,
// and resident memory, when no samples wait to be sent. `ring_bytes`: of the ring of samples (SampleRingBytes).
uint64_t LeastMemoryBytes(size_t cpus, uint64_t ring_bytes);

// ResourceExhausted, with a sentence that says what to do, if the limit is below LeastMemoryBytes.
absl::Status CheckMemoryLimit(std::optional<uint64_t> limit_bytes, size_t cpus, uint64_t ring_bytes);

}  // namespace tributary
