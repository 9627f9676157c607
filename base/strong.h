#pragma once

#include <compare>
#include <cstdint>
#include <functional>

#include "absl/hash/hash.h"

namespace tributary {

// An integer type for one kind of value: the compiler refuses a tid where a pid is expected. It costs nothing at run
// time.
//
//   using Pid = Strong<struct PidTag, int32_t>;
//
// Values can be compared and hashed. There is no arithmetic: use `.value`.
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
