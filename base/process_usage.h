#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary {

// Fields of /proc/PID/stat (proc(5)).
struct ProcessUsage {
  uint64_t threads = 0;
  uint64_t start_ticks = 0;  // since boot
  uint64_t virtual_bytes = 0;
  uint64_t resident_pages = 0;
};

// Parses the contents of /proc/PID/stat. Returns nullopt if the contents have another form. The program's name may
// contain any byte, including spaces and parentheses.
std::optional<ProcessUsage> ParseProcessUsage(std::string_view text);

// Returns "btime" of /proc/stat: seconds from 1970 to the boot of the machine. Returns nullopt if there is no such
// line.
std::optional<uint64_t> ParseBootTime(std::string_view text);

}  // namespace tributary
