#include "base/rfc3339.h"

#include <chrono>

#include "base/number.h"
#include "base/types.h"

namespace tributary {
namespace {

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

}  // namespace

std::optional<int64_t> TakeSecondFraction(std::string_view* text) {
  if (!Take(text, ".")) return 0;
  int64_t ns = 0, unit = kNsPerSecond / 10;
  size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits, unit /= 10) {
    ns += ((*text)[digits] - '0') * unit;
  }
  text->remove_prefix(digits);
  return digits == 0 ? std::nullopt : std::optional(ns);
}

std::optional<Rfc3339Time> ParseRfc3339(std::string_view text) {
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
  const std::optional<int64_t> ns = TakeSecondFraction(&text);
  if (!ns || !date.ok()) return std::nullopt;
  const std::optional<int64_t> ahead = TakeZone(&text);
  if (!ahead || !text.empty()) return std::nullopt;
  const int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  return Rfc3339Time{((days * 24 + *hour) * 60 + *minute) * 60 + *second - *ahead, *ns};
}

}  // namespace tributary
