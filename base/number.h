#pragma once

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <type_traits>

// Reads numbers in text with std::from_chars: no leading space, no '+', no "0x", no locale. A '-' is read for signed
// types only. `base` is for integers. A floating-point number is decimal and may be "inf" or "nan": the caller must
// check its range.

namespace tributary {

// Removes a number from the front of `text` and returns it. Returns nullopt and leaves `text` unchanged if there is no
// number, or if T cannot hold it.
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

// Returns the number if all of `text` is one number. Returns nullopt for any other text, and if T cannot hold the
// number.
template <typename T>
std::optional<T> ParseNumber(std::string_view text, int base = 10) {
  const std::optional<T> value = TakeNumber<T>(text, base);
  return text.empty() ? value : std::nullopt;
}

}  // namespace tributary
