#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/statusor.h"

namespace tributary {

// IP addresses with a common prefix: "10.1.0.0/16", "fd00::/8", or one address. IPv4 addresses that are written as IPv6
// (::ffff:10.1.2.3) are IPv4 addresses.
class IpRange {
 public:
  // InvalidArgument says what is valid.
  static absl::StatusOr<IpRange> Parse(std::string_view text);

  // Returns false if `address` is not a numeric address.
  bool Contains(std::string_view address) const;
  // Returns true if an address is in both ranges.
  bool Overlaps(const IpRange& other) const;

 private:
  using Bytes = std::array<uint8_t, 16>;  // IPv4 as ::ffff:a.b.c.d
  static std::optional<Bytes> ParseAddress(std::string_view text, bool* is_v4);
  IpRange(const Bytes& first, int prefix_bits) : first_(first), prefix_bits_(prefix_bits) {}

  Bytes first_;
  int prefix_bits_;
};

}  // namespace tributary
