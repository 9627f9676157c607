#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace tributary {

// What a caller of the HTTP server may do.
enum class Right : uint8_t {
  kRead,    // the page's data, queries and metrics
  kSend,    // send profiles
  kUpload,  // upload symbols
  kAdmin,   // delete data; contains all other rights
};

// A set of rights.
class Rights {
 public:
  static constexpr Rights None() { return Rights(0); }
  static constexpr Rights All() { return Rights(kAllBits); }
  static constexpr Rights Of(Right right) { return Rights(BitOf(right)); }
  // Parses names of rights with commas between them, such as "read,upload". InvalidArgument names the valid rights,
  // but nothing of `text`.
  static absl::StatusOr<Rights> Parse(std::string_view text);

  constexpr bool Has(Right right) const { return (bits_ & (BitOf(right) | BitOf(Right::kAdmin))) != 0; }
  constexpr void Add(Rights other) { bits_ = static_cast<uint8_t>(bits_ | other.bits_); }

  friend constexpr bool operator==(Rights, Rights) = default;

 private:
  static constexpr uint8_t kAllBits = 0xf;
  static constexpr uint8_t BitOf(Right right) { return static_cast<uint8_t>(1u << static_cast<uint8_t>(right)); }
  explicit constexpr Rights(uint8_t bits) : bits_(bits) {}

  uint8_t bits_;
};

// "read", "send", "upload" or "admin".
std::string_view NameOf(Right right);
// Returns the names of all rights that `rights` contains: for admin, all four.
std::vector<std::string_view> NamesOf(Rights rights);

}  // namespace tributary
