#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

// Parse numbers with std::from_chars: leading spaces, '+' and "0x" are not allowed, and the locale has no effect. A '-'
// is allowed only for signed types. `base` applies only to integers. A floating-point number is decimal, and "inf" and
// "nan" are allowed: the caller must check the range.

namespace tributary {

// Removes a number from the start of `text` and returns the number. Returns nullopt and leaves `text` unchanged if
// there is no number, or if T cannot hold it.
template <typename T>
std::optional<T> TakeNumber(std::string_view& text, int base = 10) {
  T value{};
  std::from_chars_result result;
  if constexpr (std::is_floating_point_v<T>) {
    result = std::from_chars(text.data(), text.data() + text.size(), value);
  } else {
    result = std::from_chars(text.data(), text.data() + text.size(), value, base);
  }
  if (result.ec != std::errc()) return std::nullopt;
  text.remove_prefix(static_cast<size_t>(result.ptr - text.data()));
  return value;
}

// Returns the number that `text` contains. Returns nullopt if `text` is not exactly one number, or if T cannot hold the
// number.
template <typename T>
std::optional<T> ParseNumber(std::string_view text, int base = 10) {
  const std::optional<T> value = TakeNumber<T>(text, base);
  return text.empty() ? value : std::nullopt;
}

}  // namespace tributary
