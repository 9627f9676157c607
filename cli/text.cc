#include "cli/text.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <utility>

#include "base/log.h"
#include "base/trim.h"
#include "base/utf8.h"

namespace tributary::cli {
namespace {

size_t CodePoints(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

constexpr size_t kNameLettersMax = 32;
std::string ShownName(std::string_view name) { return CutToWidth(EscapeForDisplay(name), kNameLettersMax); }

}  // namespace

std::string FormatNs(uint64_t ns) {
  double seconds = static_cast<double>(ns) / 1e9;
  if (seconds >= 3600) return fmt::format("{} h {:02} min", ns / 3'600'000'000'000, ns / 60'000'000'000 % 60);
  if (seconds >= 60) return fmt::format("{} min {:02} s", ns / 60'000'000'000, ns / 1'000'000'000 % 60);
  if (seconds >= 1 || ns == 0) return fmt::format("{:.2f} s", seconds);
  if (seconds >= 1e-3) return fmt::format("{:.1f} ms", seconds * 1e3);
  return fmt::format("{:.1f} us", seconds * 1e6);
}

std::string FormatCount(uint64_t count) {
  std::string digits = std::to_string(count);
  for (size_t i = digits.size(); i > 3; i -= 3) digits.insert(i - 3, 1, ',');
  return digits;
}

std::string FormatBytes(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  return unit == 0 ? fmt::format("{} B", bytes) : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string FormatValue(uint64_t value, std::string_view unit) {
  if (unit == "nanoseconds") return FormatNs(value);
  if (unit == "bytes") return FormatBytes(value);
  return fmt::format("{} {}", FormatCount(value), ShownName(unit));
}

std::string FormatRate(double per_second, const Measure& measure) {
  if (measure.is_gauge) {
    return FormatValue(static_cast<uint64_t>(std::llround(std::clamp(per_second, 0.0, 1e18))), measure.unit);
  }
  if (measure.IsCpuTime()) return fmt::format("{:.3g}", per_second / 1e9);
  const auto rounded = static_cast<uint64_t>(std::llround(std::clamp(per_second, 0.0, 1e18)));
  const bool is_small = per_second < 100 && measure.unit != "nanoseconds";
  if (!is_small) return FormatValue(rounded, measure.unit) + "/s";
  return fmt::format("{:.3g} {}/s", per_second, measure.unit == "bytes" ? "B" : ShownName(measure.unit));
}

std::string MeasureTitle(const Measure& measure) {
  if (measure.IsCpuTime()) return "CPU time";
  if (measure.type == "off_cpu" && measure.unit == "nanoseconds") return "time off the CPU";
  return ShownName(measure.type) + (measure.is_gauge ? " on average" : "");
}

std::string CoverageNote(const Measure& measure) {
  if (measure.covered_from_ms == 0) return "";
  return fmt::format("single samples before {} have expired (reducer --retention-raw), so they are not counted\n",
                     FormatTime(measure.covered_from_ms));
}

std::string FormatPercent(uint64_t part, uint64_t whole) {
  if (whole == 0) return "-";
  return fmt::format("{:.2f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string FormatTime(uint64_t unix_ms) {
  const auto seconds = static_cast<std::time_t>(unix_ms / 1000);
  std::tm local{};
  if (localtime_r(&seconds, &local) == nullptr) return "?";
  return fmt::format("{:%Y-%m-%d %H:%M:%S}", local);
}

std::string CutToWidth(std::string_view text, size_t letters) {
  if (CodePoints(text) <= letters) return std::string(text);
  std::string out;
  for (size_t taken = 0; taken + 1 < letters; ++taken) {
    size_t length = std::max<size_t>(1, Utf8SequenceLength(text));
    out += text.substr(0, length);
    text.remove_prefix(length);
  }
  return letters == 0 ? "" : out + "…";
}

Table::Table(std::vector<std::string> headings, std::vector<bool> right)
    : headings_(std::move(headings)), right_(std::move(right)), widths_(headings_.size()) {
  Widen(headings_);
}

void Table::Widen(const std::vector<std::string>& row) {
  for (size_t i = 0; i < row.size(); ++i) widths_[i] = std::max(widths_[i], CodePoints(row[i]));
}

std::string Table::Line(const std::vector<std::string>& row) const {
  std::string line;
  for (size_t i = 0; i < row.size(); ++i) {
    std::string pad(widths_[i] - CodePoints(row[i]), ' ');
    line += right_[i] ? pad + row[i] : row[i] + pad;
    line += "  ";
  }
  return std::string(TrimEnd(line, " ")) + '\n';
}

std::string Table::Write(const std::vector<std::vector<std::string>>& rows) {
  for (const auto& row : rows) Widen(row);
  std::string out;
  if (!headings_.empty()) out += Line(headings_);
  headings_.clear();
  for (const auto& row : rows) out += Line(row);
  return out;
}

std::string WriteTable(const std::vector<std::string>& headings, const std::vector<bool>& right,
                       const std::vector<std::vector<std::string>>& rows) {
  return Table(headings, right).Write(rows);
}

}  // namespace tributary::cli
