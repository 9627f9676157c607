#include "kernel-collector/distribution/yaml_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/number.h"
#include "base/types.h"

namespace tributary {
namespace {

constexpr std::pair<std::string_view, int64_t> kGoUnits[] = {
    {"ns", 1},        {"us", kNsPerUs},    {"\u00b5s", kNsPerUs}, {"\u03bcs", kNsPerUs},
    {"ms", kNsPerMs}, {"s", kNsPerSecond}, {"m", kNsPerMinute},   {"h", 60 * kNsPerMinute},
};

}  // namespace

std::optional<bool> ParseYamlBool(const YamlNode& node) {
  if (node.text == "true" || node.text == "True" || node.text == "TRUE") return true;
  if (node.text == "false" || node.text == "False" || node.text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> ParseGoDurationNs(std::string_view text) {
  if (text == "0") return 0;
  if (text.empty()) return std::nullopt;
  double ns = 0;
  while (!text.empty()) {
    const std::optional<double> number = TakeNumber<double>(text);
    if (!number || !(*number >= 0)) return std::nullopt;
    const std::string_view name = text.substr(0, text.find_first_of("0123456789."));
    const auto unit = std::find_if(std::begin(kGoUnits), std::end(kGoUnits), [&](auto u) { return u.first == name; });
    if (unit == std::end(kGoUnits)) return std::nullopt;
    ns += *number * static_cast<double>(unit->second);
    text.remove_prefix(name.size());
  }
  if (!(ns < 9.2e18)) return std::nullopt;  // int64_t ends at 9.22e18
  return std::llround(ns);
}

std::string DurationText(int64_t ns) {
  if (ns % kNsPerSecond == 0) return fmt::format("{}s", ns / kNsPerSecond);
  if (ns % kNsPerMs == 0) return fmt::format("{}ms", ns / kNsPerMs);
  if (ns % kNsPerUs == 0) return fmt::format("{}us", ns / kNsPerUs);
  return fmt::format("{}ns", ns);
}

std::optional<std::string_view> TextOf(const YamlNode& node) {
  if (node.IsScalar() || !node.text.empty()) return node.text;
  return std::nullopt;
}

}  // namespace tributary
