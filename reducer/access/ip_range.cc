#include "reducer/access/ip_range.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "base/log.h"
#include "base/number.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr std::array<uint8_t, 12> kV4Prefix = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
constexpr int kV4PrefixBits = 96;

bool HasPrefix(const std::array<uint8_t, 16>& a, const std::array<uint8_t, 16>& b, int bits) {
  const auto bytes = static_cast<size_t>(bits / 8);
  if (!std::equal(a.begin(), a.begin() + bytes, b.begin())) return false;
  const int rest = bits % 8;
  return rest == 0 || ((a[bytes] ^ b[bytes]) >> (8 - rest)) == 0;
}

}  // namespace

std::optional<IpRange::Bytes> IpRange::ParseAddress(std::string_view text, bool* is_v4) {
  const std::string terminated(text.substr(0, INET6_ADDRSTRLEN));
  Bytes bytes{};
  if (inet_pton(AF_INET6, terminated.c_str(), bytes.data()) == 1) {
    *is_v4 = std::equal(kV4Prefix.begin(), kV4Prefix.end(), bytes.begin());
    return bytes;
  }
  std::copy(kV4Prefix.begin(), kV4Prefix.end(), bytes.begin());
  if (inet_pton(AF_INET, terminated.c_str(), bytes.data() + kV4Prefix.size()) != 1) return std::nullopt;
  *is_v4 = true;
  return bytes;
}

absl::StatusOr<IpRange> IpRange::Parse(std::string_view text) {
  const size_t slash = text.find('/');
  const std::string_view address = text.substr(0, slash);
  bool is_v4 = false;
  const std::optional<Bytes> bytes = ParseAddress(address, &is_v4);
  const bool is_short = is_v4 && address.find(':') == std::string_view::npos;
  const int bits_max = is_short ? 128 - kV4PrefixBits : 128;
  std::optional<int> bits = bits_max;
  if (slash != std::string_view::npos) bits = ParseNumber<int>(text.substr(slash + 1));
  if (!bytes || !bits || *bits < 0 || *bits > bits_max) {
    return Error(absl::StatusCode::kInvalidArgument,
                 fmt::format("'{}' is not a range of addresses: give one like 10.1.0.0/16, fd00::/8 or 10.1.2.3",
                             EscapeForDisplay(text.substr(0, 64))));
  }
  return IpRange(*bytes, is_short ? *bits + kV4PrefixBits : *bits);
}

bool IpRange::Contains(std::string_view address) const {
  bool is_v4 = false;
  const std::optional<Bytes> bytes = ParseAddress(address, &is_v4);
  return bytes && HasPrefix(first_, *bytes, prefix_bits_);
}

bool IpRange::Overlaps(const IpRange& other) const {
  return HasPrefix(first_, other.first_, std::min(prefix_bits_, other.prefix_bits_));
}

}  // namespace tributary
