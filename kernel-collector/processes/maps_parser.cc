#include "kernel-collector/processes/maps_parser.h"

#include "base/number.h"

namespace tributary {
namespace {

// Takes a hexadecimal number off the front of `text`, and the separator after it.
template <typename T>
bool TakeHex(std::string_view& text, char separator, T* value) {
  const std::optional<T> number = TakeNumber<T>(text, 16);
  if (!number || !text.starts_with(separator)) return false;
  *value = *number;
  text.remove_prefix(1);
  return true;
}

std::string UnescapeNewlines(std::string_view path) {
  if (path.find('\\') == std::string_view::npos) return std::string(path);
  std::string out;
  out.reserve(path.size());
  for (size_t i = 0; i < path.size();) {
    if (path.substr(i, 4) == "\\012") {
      out.push_back('\n');
      i += 4;
    } else {
      out.push_back(path[i++]);
    }
  }
  return out;
}

// Takes the first line off `text`, without its newline. Returns false at the end.
bool TakeLine(std::string_view* text, std::string_view* line) {
  if (text->empty()) return false;
  size_t newline = text->find('\n');
  *line = text->substr(0, newline);
  text->remove_prefix(newline == std::string_view::npos ? text->size() : newline + 1);
  return true;
}

}  // namespace

std::string_view WithoutDeleted(std::string_view path) {
  constexpr std::string_view kSuffix = " (deleted)";
  if (path.ends_with(kSuffix)) path.remove_suffix(kSuffix.size());
  return path;
}

std::optional<MapsEntry> ParseMapsLine(std::string_view line) {
  MapsEntry entry;
  if (!TakeHex(line, '-', &entry.start) || !TakeHex(line, ' ', &entry.end)) return std::nullopt;
  if (entry.start >= entry.end) return std::nullopt;
  if (line.size() < 5 || line[4] != ' ') return std::nullopt;
  entry.executable = line[2] == 'x';
  line.remove_prefix(5);
  if (!TakeHex(line, ' ', &entry.file_offset)) return std::nullopt;
  if (!TakeHex(line, ':', &entry.device_major) || !TakeHex(line, ' ', &entry.device_minor)) return std::nullopt;
  // An anonymous mapping's line ends with the inode, with or without blanks after it.
  const std::optional<uint64_t> inode = TakeNumber<uint64_t>(line);
  if (!inode) return std::nullopt;
  entry.inode = *inode;
  if (!line.empty() && line.front() != ' ') return std::nullopt;
  size_t path_at = line.find_first_not_of(' ');
  if (path_at != std::string_view::npos) entry.path = UnescapeNewlines(WithoutDeleted(line.substr(path_at)));
  return entry;
}

size_t ParseMaps(std::string_view text, const std::function<void(MapsEntry)>& visit) {
  size_t malformed = 0;
  std::string_view line;
  while (TakeLine(&text, &line)) {
    if (auto entry = ParseMapsLine(line)) {
      visit(*std::move(entry));
    } else {
      ++malformed;
    }
  }
  return malformed;
}

void ParseCodeMaps(std::string_view text, const std::function<void(MapsEntry)>& visit) {
  std::string_view line;
  while (TakeLine(&text, &line)) {
    size_t blank = line.find(' ');
    if (blank == std::string_view::npos || line.size() < blank + 4 || line[blank + 3] != 'x') continue;
    if (auto entry = ParseMapsLine(line)) visit(*std::move(entry));
  }
}

}  // namespace tributary
