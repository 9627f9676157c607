#include "reducer/web/parse_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/status.h"
#include "reducer/query/query_request.h"

namespace tributary {
namespace {

constexpr int64_t kMsFrom = 100'000'000'000, kUsFrom = 1000 * kMsFrom, kNsFrom = 1000 * kUsFrom;

std::string Shown(std::string_view text) { return EscapeForDisplay(text.substr(0, 64)); }

absl::Status NoTime(std::string_view text) {
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("'{}' is not a time: give RFC 3339 with a zone (2025-11-21T07:26:40Z, "
                           "2025-11-21T08:26:40.5+01:00), a time relative to now (now, -60s, now-5m, -1h), or a Unix "
                           "time in s (1763710000, 1763710000.5) or ms (1763710000000)",
                           Shown(text)));
}

absl::Status OutOfRange(std::string_view text) {
  return Error(absl::StatusCode::kInvalidArgument,
               fmt::format("'{}' is not a time in the years 1970 to 2199; a Unix time is in s below 10^11 "
                           "(1763710000), in ms below 10^14 (1763710000000), in us below 10^17, and otherwise in ns",
                           Shown(text)));
}

UnixNs WholeMs(int64_t ns) { return UnixNs{ns / kNsPerMs * kNsPerMs}; }

bool Take(std::string_view* text, std::string_view one_of) {
  if (text->empty() || one_of.find(text->front()) == one_of.npos) return false;
  text->remove_prefix(1);
  return true;
}

// Removes exactly `digits` digits.
std::optional<int> TakeDigits(std::string_view* text, size_t digits) {
  const std::optional<uint32_t> number = ParseNumber<uint32_t>(text->substr(0, digits));
  if (text->size() < digits || !number) return std::nullopt;
  text->remove_prefix(digits);
  return static_cast<int>(*number);
}

// Removes a fraction of a second, if there is one. Returns it in ns, without further digits, or nullopt if a point has
// no digits after it.
std::optional<int64_t> TakeFraction(std::string_view* text) {
  if (!Take(text, ".")) return 0;
  int64_t ns = 0, unit = kNsPerSecond / 10;
  size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits, unit /= 10) {
    ns += ((*text)[digits] - '0') * unit;
  }
  text->remove_prefix(digits);
  return digits == 0 ? std::nullopt : std::optional(ns);
}

// Removes the zone. Returns the seconds by which its clocks are ahead of UTC.
std::optional<int64_t> TakeZone(std::string_view* text) {
  if (Take(text, "Zz")) return 0;
  const bool is_behind = text->starts_with('-');
  if (!Take(text, "+- ")) return std::nullopt;
  const std::optional<int> hours = TakeDigits(text, 2);
  if (!hours || !Take(text, ":")) return std::nullopt;
  const std::optional<int> minutes = TakeDigits(text, 2);
  if (!minutes || *hours > 23 || *minutes > 59) return std::nullopt;
  const int64_t seconds = (*hours * 60 + *minutes) * 60;
  return is_behind ? -seconds : seconds;
}

struct ParsedTime {
  int64_t seconds = 0, ns = 0;  // since 1970; years 0 to 9999
};

std::optional<ParsedTime> ParseRfc3339(std::string_view text) {
  const auto year = TakeDigits(&text, 4);
  if (!year || !Take(&text, "-")) return std::nullopt;
  const auto month = TakeDigits(&text, 2);
  if (!month || !Take(&text, "-")) return std::nullopt;
  const auto day = TakeDigits(&text, 2);
  if (!day || !Take(&text, "Tt ")) return std::nullopt;
  const auto hour = TakeDigits(&text, 2);
  if (!hour || !Take(&text, ":")) return std::nullopt;
  const auto minute = TakeDigits(&text, 2);
  if (!minute || !Take(&text, ":")) return std::nullopt;
  const auto second = TakeDigits(&text, 2);
  if (!second || *hour > 23 || *minute > 59 || *second > 60) return std::nullopt;  // 60: a leap second
  const std::chrono::year_month_day date{std::chrono::year(*year), std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  const std::optional<int64_t> ns = TakeFraction(&text);
  if (!ns || !date.ok()) return std::nullopt;
  const std::optional<int64_t> ahead = TakeZone(&text);
  if (!ahead || !text.empty()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return ParsedTime{((days * 24 + *hour) * 60 + *minute) * 60 + *second - *ahead, *ns};
}

absl::StatusOr<UnixNs> ToUnixNs(std::string_view text, const ParsedTime& time) {
  constexpr int64_t kSecondsMax = kQueryTimes.to.value / kNsPerSecond;
  if (time.seconds < 0 || time.seconds > kSecondsMax || (time.seconds == kSecondsMax && time.ns > 0)) {
    return OutOfRange(text);
  }
  return WholeMs(time.seconds * kNsPerSecond + time.ns);
}

absl::StatusOr<UnixNs> ParseUnixTime(std::string_view text) {
  std::string_view rest = text;
  const std::optional<uint64_t> number = TakeNumber<uint64_t>(rest);
  if (!number) {
    const bool is_number = !text.empty() && text.find_first_not_of("0123456789") == text.npos;
    return is_number ? OutOfRange(text) : NoTime(text);
  }
  if (*number < static_cast<uint64_t>(kMsFrom)) {
    const std::optional<int64_t> ns = TakeFraction(&rest);
    if (!ns || !rest.empty()) return NoTime(text);
    return ToUnixNs(text, {static_cast<int64_t>(*number), *ns});
  }
  if (!rest.empty()) return NoTime(text);
  if (*number > static_cast<uint64_t>(kQueryTimes.to.value)) return OutOfRange(text);
  const auto value = static_cast<int64_t>(*number);
  const int64_t per_second = value < kUsFrom ? 1000 : value < kNsFrom ? 1'000'000 : kNsPerSecond;
  return ToUnixNs(text, {value / per_second, value % per_second * (kNsPerSecond / per_second)});
}

}  // namespace

absl::StatusOr<UnixNs> ParseTime(std::string_view text, UnixNs now) {
  if (text == "now") return WholeMs(now.value);
  std::string_view offset = text.starts_with("now") ? text.substr(3) : text;
  if (offset.starts_with('-')) {
    absl::StatusOr<int64_t> before = ParseDurationNs(offset.substr(1));
    if (!before.ok()) return NoTime(text);
    return WholeMs(std::max<int64_t>(0, now.value - *before));  // both are ≥ 0: no overflow
  }
  if (text.size() > 4 && text[4] == '-') {
    const std::optional<ParsedTime> time = ParseRfc3339(text);
    return time ? ToUnixNs(text, *time) : NoTime(text);
  }
  return ParseUnixTime(text);
}

}  // namespace tributary
