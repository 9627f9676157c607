#include "reducer/web/parse_time.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>

#include "base/log.h"
#include "base/number.h"
#include "base/parse.h"
#include "base/rfc3339.h"
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

absl::StatusOr<UnixNs> ToUnixNs(std::string_view text, const Rfc3339Time& time) {
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
    const std::optional<int64_t> ns = TakeSecondFraction(&rest);
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
    const std::optional<Rfc3339Time> time = ParseRfc3339(text);
    return time ? ToUnixNs(text, *time) : NoTime(text);
  }
  return ParseUnixTime(text);
}

}  // namespace tributary
