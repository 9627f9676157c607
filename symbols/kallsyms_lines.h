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

// Returns nullopt if the line has another form.
std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line);

// Removes the first line from `text` and stores the line without its newline. Returns false at the end.
bool TakeLine(std::string_view& text, std::string_view* line);

}  // namespace tributary
