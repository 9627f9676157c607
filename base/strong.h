#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "absl/hash/hash.h"

namespace tributary {

// An integer with one meaning only: a pid is not a tid, and neither is a time. No cost at run time.
//
//   using Pid = Strong<struct PidTag, int32_t>;
//
// Ids compare and hash. Quantities (times, sizes) are Strong too, and define their arithmetic where they are declared.
template <typename Tag, typename T>
struct Strong {
  using Value = T;

  T value{};

  constexpr Strong() = default;
  constexpr explicit Strong(T v) : value(v) {}

  friend constexpr auto operator<=>(const Strong&, const Strong&) = default;

  template <typename H>
  friend H AbslHashValue(H h, const Strong& s) {
    return H::combine(std::move(h), s.value);
  }
};

}  // namespace tributary
