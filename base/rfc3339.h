#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace tributary {

// A time since 1970 in UTC. `seconds` is negative for earlier times, and `ns` is from 0 to 999,999,999.
struct Rfc3339Time {
  int64_t seconds = 0, ns = 0;
};

// Parses a time of RFC 3339 in the years 0 to 9999, such as 2025-11-21T07:26:40Z or 2025-11-21T08:26:40.5+01:00. A
// space may stand for the `T`, and for the `+`, because an unescaped `+` in a URL is a space. Digits after the
// nanosecond are ignored. Returns nullopt for other texts.
std::optional<Rfc3339Time> ParseRfc3339(std::string_view text);

// Removes a fraction of a second, such as ".5", from the start of `text`. Returns it in ns, without further digits: 0
// if there is none, and nullopt if a point has no digits after it.
std::optional<int64_t> TakeSecondFraction(std::string_view* text);

}  // namespace tributary
