#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace tributary {

// One line of /proc/PID/maps: "7f…-7f… r-xp 00002000 fe:00 247026   /usr/bin/cat". Source: proc_pid_maps(5) and
// fs/proc/task_mmu.c, which writes a newline in a path as \012.
struct MapsEntry {
  uint64_t start = 0, end = 0, file_offset = 0;
  uint32_t device_major = 0, device_minor = 0;
  uint64_t inode = 0;
  bool executable = false;
  std::string path;  // as the process sees it, without the kernel's " (deleted)"; "": none
};

// A path may contain any bytes, because processes choose it. Returns nullopt if a field is missing or the range is
// empty.
std::optional<MapsEntry> ParseMapsLine(std::string_view line);

// Calls `visit` for every well-formed line. Returns the number of malformed lines.
size_t ParseMaps(std::string_view text, const std::function<void(MapsEntry)>& visit);

// Calls `visit` only for executable mappings, which are about a fifth of the lines. Parses only the permissions of the
// other lines.
void ParseCodeMaps(std::string_view text, const std::function<void(MapsEntry)>& visit);

// Returns `path` without the kernel's " (deleted)".
std::string_view WithoutDeleted(std::string_view path);

}  // namespace tributary
