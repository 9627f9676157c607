#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace tributary::cli {

// Who is whose child: pid to parent pid.
using Parents = std::map<int64_t, int64_t>;

// `root` and everything below it.
std::set<int64_t> Descendants(int64_t root, const Parents& parents);

// Adds the living descendants of `root`, as /proc/PID/task/TID/children names them. At most 100,000 are followed.
void AddLivingChildren(const std::string& proc_root, int64_t root, Parents& parents);

// Selectors `{process_pid=~"1|2|3"}` that together select these processes, each within the reducer's 1 KiB for a
// regular expression.
std::vector<std::string> PidSelectors(const std::set<int64_t>& pids, size_t pattern_bytes_max = 1000);

}  // namespace tributary::cli
