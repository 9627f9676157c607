#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "base/types.h"

namespace tributary {

// Parses a time of a request, in one of these forms:
//   - RFC 3339 with a zone, such as 2025-11-21T07:26:40Z or 2025-11-21T08:26:40.5+01:00. A space may stand for the
//     `T`, and for the `+`, because an unescaped `+` in a URL is a space;
//   - `now`, or a time before now, such as -60s, now-5m or -1h, with the units ms, s, m, h and d. A time before 1970
//     becomes 1970;
//   - a Unix time. Its size tells the unit: below 10^11 seconds (which may have a fraction), below 10^14 milliseconds,
//     below 10^17 microseconds, and otherwise nanoseconds. So each unit but seconds begins in March 1973.
// The result is rounded down to a whole ms. InvalidArgument: the text has none of these forms, or the time is not
// within kQueryTimes. The message says what is valid.
absl::StatusOr<UnixNs> ParseTime(std::string_view text, UnixNs now);

}  // namespace tributary
