#include "kernel-collector/runtimes/jit/perf_map.h"

#include "base/number.h"

namespace tributary {
namespace {

constexpr std::string_view kBlanks = " \t";

// Takes a hexadecimal number and the blanks after it off the front of `line`.
std::optional<uint64_t> TakeHex(std::string_view& line) {
  if (line.starts_with("0x") || line.starts_with("0X")) line.remove_prefix(2);
  const std::optional<uint64_t> number = TakeNumber<uint64_t>(line, 16);
  const size_t blanks = line.find_first_not_of(kBlanks);
  if (blanks == 0 || blanks == std::string_view::npos) return std::nullopt;
  line.remove_prefix(blanks);
  return number;
}

}  // namespace

std::optional<PerfMapLine> ParsePerfMapLine(std::string_view line) {
  const std::optional<uint64_t> start = TakeHex(line);
  if (!start) return std::nullopt;
  const std::optional<uint64_t> size = TakeHex(line);
  if (!size || *size == 0 || *start + *size < *start) return std::nullopt;
  const size_t end = line.find_last_not_of(" \t\r");
  if (end == std::string_view::npos || line.front() == '\0') return std::nullopt;
  return PerfMapLine{*start, *start + *size, line.substr(0, end + 1)};
}

void PerfMapParser::ParseLine(std::string_view line, const Visit& visit) {
  if (line.empty()) return;
  if (const auto parsed = ParsePerfMapLine(line)) {
    visit(*parsed);
  } else {
    ++malformed_;
  }
}

void PerfMapParser::Add(std::string_view bytes, const Visit& visit) {
  while (!bytes.empty()) {
    const size_t newline = bytes.find('\n');
    const bool is_complete = newline != std::string_view::npos;
    std::string_view line = bytes.substr(0, newline);
    bytes.remove_prefix(is_complete ? newline + 1 : bytes.size());
    if (!skips_) {
      const size_t room = kLineBytesMax - begun_.size();
      skips_ = line.size() > room;
      if (is_complete && begun_.empty()) {
        ParseLine(line.substr(0, room), visit);
      } else {
        begun_.append(line.substr(0, room));
        if ((is_complete || skips_) && begun_.size() != ended_) ParseLine(begun_, visit);
      }
      if (is_complete || skips_) begun_.clear(), ended_ = 0;
    }
    if (is_complete) skips_ = false;
  }
}

void PerfMapParser::End(const Visit& visit) {
  if (begun_.size() == ended_) return;
  const auto parsed = ParsePerfMapLine(begun_);
  if (!parsed) return;
  visit(*parsed);
  ended_ = begun_.size();
}

}  // namespace tributary
