#include "base/process_usage.h"

#include <algorithm>

#include "base/number.h"

namespace tributary {
namespace {

// Removes the text up to the next space or line end from `text`, with the separator. Returns it without the separator.
std::string_view NextWord(std::string_view& text) {
  const size_t end = std::min(text.find_first_of(" \n"), text.size());
  std::string_view word = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return word;
}

}  // namespace

std::optional<ProcessUsage> ParseProcessUsage(std::string_view text) {
  const size_t name_end = text.rfind(") ");
  if (name_end == text.npos) return std::nullopt;
  text.remove_prefix(name_end + 2);
  constexpr int kThreads = 20, kStartTicks = 22, kVirtualBytes = 23, kResidentPages = 24;
  ProcessUsage out;
  for (int field = 3; field <= kResidentPages; ++field) {
    std::string_view word = NextWord(text);
    uint64_t* wanted = field == kThreads         ? &out.threads
                       : field == kStartTicks    ? &out.start_ticks
                       : field == kVirtualBytes  ? &out.virtual_bytes
                       : field == kResidentPages ? &out.resident_pages
                                                 : nullptr;
    if (wanted == nullptr) continue;
    const std::optional<uint64_t> value = TakeNumber<uint64_t>(word);
    if (!value) return std::nullopt;
    *wanted = *value;
  }
  return out;
}

std::optional<uint64_t> ParseBootTime(std::string_view text) {
  constexpr std::string_view kKey = "btime ";
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (!line.starts_with(kKey)) continue;
    line.remove_prefix(kKey.size());
    return TakeNumber<uint64_t>(line);
  }
  return std::nullopt;
}

}  // namespace tributary
