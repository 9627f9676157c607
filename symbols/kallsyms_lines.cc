#include "symbols/kallsyms_lines.h"

#include "base/number.h"

namespace tributary {

bool TakeLine(std::string_view& text, std::string_view* line) {
  if (text.empty()) return false;
  size_t end = text.find('\n');
  *line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return true;
}

std::optional<KallsymsLine> ParseKallsymsLine(std::string_view line) {
  KallsymsLine parsed;
  const std::optional<uint64_t> address = TakeNumber<uint64_t>(line, 16);
  if (!address) return std::nullopt;
  parsed.address = *address;
  if (line.size() < 4 || line[0] != ' ' || line[2] != ' ') return std::nullopt;
  parsed.type = line[1];
  line.remove_prefix(3);
  size_t tab = line.find('\t');
  parsed.name = line.substr(0, tab);
  if (parsed.name.empty()) return std::nullopt;
  if (tab != std::string_view::npos) {
    std::string_view module = line.substr(tab + 1);
    if (module.size() < 3 || !module.starts_with('[') || !module.ends_with(']')) return std::nullopt;
    parsed.module = module.substr(1, module.size() - 2);
  }
  return parsed;
}

}  // namespace tributary
