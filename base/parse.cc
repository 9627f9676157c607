#include "base/parse.h"

#include <fmt/format.h>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"
#include "base/types.h"

namespace tributary {
namespace {

absl::Status Invalid(std::string_view text, std::string_view expected) {
  return Error(absl::StatusCode::kInvalidArgument, fmt::format("'{}' is not {}", EscapeForDisplay(text), expected));
}

struct Unit {
  std::string_view suffix;
  int64_t factor;
};

// Parses a decimal number with one of the units. The result is exact in int64.
absl::StatusOr<int64_t> ParseWithUnit(std::string_view text, std::initializer_list<Unit> units,
                                      std::string_view expected) {
  std::string_view suffix = text;
  const std::optional<int64_t> number = TakeNumber<int64_t>(suffix);
  if (!number || *number < 0) return Invalid(text, expected);
  for (const Unit& unit : units) {
    int64_t result = 0;
    if (suffix != unit.suffix) continue;
    if (__builtin_mul_overflow(*number, unit.factor, &result)) return Invalid(text, "in range");
    return result;
  }
  return Invalid(text, expected);
}

}  // namespace

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  constexpr std::string_view kExpected = "HOST:PORT (127.0.0.1:8000, [::1]:8000, :8000)";
  size_t colon = text.rfind(':');
  if (colon == text.npos) return Invalid(text, kExpected);
  std::string_view host = text.substr(0, colon), port = text.substr(colon + 1);
  HostPort out;
  const std::optional<uint16_t> port_number = ParseNumber<uint16_t>(port);
  if (!port_number) return Invalid(text, kExpected);
  out.port = *port_number;
  if (host.starts_with('[') != host.ends_with(']')) return Invalid(text, kExpected);
  if (host.starts_with('[')) {
    host = host.substr(1, host.size() - 2);
  } else if (host.find(':') != host.npos) {
    return Invalid(text, kExpected);
  }
  out.host = host.empty() ? "0.0.0.0" : std::string(host);
  return out;
}

std::string FormatHostPort(const HostPort& address) {
  const bool is_v6 = address.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", address.host, is_v6 ? "]" : "", address.port);
}

absl::StatusOr<HostPort> ParseListen(std::string_view text) {
  const bool is_port = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
  return ParseHostPort(is_port ? fmt::format("127.0.0.1:{}", text) : std::string(text));
}

absl::StatusOr<int64_t> ParseDurationNs(std::string_view text) {
  return ParseWithUnit(text,
                       {{"ns", 1},
                        {"us", kNsPerUs},
                        {"ms", kNsPerMs},
                        {"s", kNsPerSecond},
                        {"m", kNsPerMinute},
                        {"h", 60 * kNsPerMinute},
                        {"d", kNsPerDay}},
                       "a duration (250ms, 90s, 5m, 24h, 7d)");
}

absl::StatusOr<int64_t> ParseBytes(std::string_view text) {
  return ParseWithUnit(text,
                       {{"", 1},
                        {"B", 1},
                        {"KB", 1000},
                        {"MB", 1'000'000},
                        {"GB", 1'000'000'000},
                        {"TB", 1'000'000'000'000},
                        {"KiB", int64_t{1} << 10},
                        {"MiB", int64_t{1} << 20},
                        {"GiB", int64_t{1} << 30},
                        {"TiB", int64_t{1} << 40}},
                       "a size (1048576, 64MiB, 10GB)");
}

}  // namespace tributary
