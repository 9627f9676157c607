#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary {

// One line of /proc/kallsyms: "ffffffff81000000 T _stext" or "ffffffffc0001000 t init\t[module]" (kernel/kallsyms.c,
// s_show).
struct KallsymsLine {
  uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;  // "" for the kernel itself
};

// Returns nullopt if the line has another format.
std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line);

// Removes the first line from `text` and sets `line` to it, without the newline. Returns false if `text` is empty.
bool TakeLine(std::string_view& text, std::string_view* line);

}  // namespace tributary
