#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tributary::cli {

// The parent of each process: pid to parent pid.
using Parents = std::map<int64_t, int64_t>;

// Returns `root` and all its descendants.
std::set<int64_t> Descendants(int64_t root, const Parents& parents);

// Adds the living descendants of `root`, as listed in /proc/PID/task/TID/children. Reads about 100,000 processes at
// most.
void AddLivingChildren(const std::string& proc_root, int64_t root, Parents& parents);

// Returns selectors `{process_pid=~"1|2|3"}` that together select these processes. A regular expression has at most
// `pattern_bytes_max` bytes, because the reducer refuses more than 1 KiB.
std::vector<std::string> PidSelectors(const std::set<int64_t>& pids, size_t pattern_bytes_max = 1000);

}  // namespace tributary::cli
