#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tributary::cli {

// The parent of each process: pid to parent pid.
using Parents = std::map<int64_t, int64_t>;

// Returns `root` and all processes below it.
std::set<int64_t> Descendants(int64_t root, const Parents& parents);

// Adds the living descendants of `root`, as listed in /proc/PID/task/TID/children. Follows at most 100,000.
void AddLivingChildren(const std::string& proc_root, int64_t root, Parents& parents);

// Returns selectors `{process_pid=~"1|2|3"}` that together select these processes. Each is within the reducer's limit
// of 1 KiB for a regular expression.
std::vector<std::string> PidSelectors(const std::set<int64_t>& pids, size_t pattern_bytes_max = 1000);

}  // namespace tributary::cli
