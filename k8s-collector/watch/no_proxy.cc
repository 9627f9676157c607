#include "k8s-collector/watch/no_proxy.h"

#include <arpa/inet.h>
#include <strings.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "base/number.h"

namespace tributary {
namespace {

constexpr std::string_view kSeparators = ", \t";

struct Address {
  std::array<uint8_t, 16> bytes{};
  unsigned bits = 0;  // 32 or 128
};

std::optional<Address> ParseAddress(std::string_view text) {
  const std::string copy(text);
  Address address;
  if (inet_pton(AF_INET, copy.c_str(), address.bytes.data()) == 1) {
    address.bits = 32;
  } else if (inet_pton(AF_INET6, copy.c_str(), address.bytes.data()) == 1) {
    address.bits = 128;
  } else {
    return std::nullopt;
  }
  return address;
}

// `network` is an address, or an address with a number of bits.
bool IsInNetwork(const Address& host, std::string_view network) {
  const size_t slash = network.find('/');
  const std::optional<Address> address = ParseAddress(network.substr(0, slash));
  if (!address || address->bits != host.bits) return false;
  unsigned bits = host.bits;
  if (slash != network.npos) {
    const auto given = ParseNumber<uint32_t>(network.substr(slash + 1));
    if (!given || *given > host.bits) return false;
    bits = *given;
  }
  const size_t whole = bits / 8;
  if (!std::equal(host.bytes.begin(), host.bytes.begin() + whole, address->bytes.begin())) return false;
  const unsigned rest = bits % 8;
  return rest == 0 || (host.bytes[whole] ^ address->bytes[whole]) >> (8 - rest) == 0;
}

bool IsNameBelow(std::string_view host, std::string_view name) {
  if (name.ends_with('.')) name.remove_suffix(1);
  if (name.starts_with('.')) name.remove_prefix(1);
  if (name.empty() || name.size() > host.size()) return false;
  const std::string_view end = host.substr(host.size() - name.size());
  if (strncasecmp(end.data(), name.data(), name.size()) != 0) return false;
  return end.size() == host.size() || host[host.size() - name.size() - 1] == '.';
}

}  // namespace

bool IsWithoutProxy(std::string_view host, std::string_view list) {
  if (list == "*") return true;
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.remove_suffix(1);
  const std::optional<Address> address = ParseAddress(host);
  while (!list.empty()) {
    const std::string_view entry = list.substr(0, list.find_first_of(kSeparators));
    list.remove_prefix(std::min(entry.size() + 1, list.size()));
    if (address ? IsInNetwork(*address, entry) : IsNameBelow(host, entry)) return true;
  }
  return false;
}

}  // namespace tributary
