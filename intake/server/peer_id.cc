#include "intake/server/peer_id.h"

#include <arpa/inet.h>
#include <fmt/format.h>

#include <span>
#include <string_view>

#include "base/hex.h"
#include "base/parse.h"
#include "base/sha256.h"

namespace tributary::intake {
namespace {

constexpr size_t kNetworkBytes = 8;  // of an IPv6 address
constexpr size_t kIpv4At = 12;       // in an IPv6 address that contains an IPv4 address

// Returns the part of the address that the peer cannot choose. Other texts than addresses stay as they are.
std::string Network(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  if (!parsed.ok()) return address;
  in6_addr v6{};
  if (inet_pton(AF_INET6, parsed->host.c_str(), &v6) != 1) return parsed->host;
  const std::span<const uint8_t> bytes(v6.s6_addr);
  if (!IN6_IS_ADDR_V4MAPPED(&v6)) return ToHex(bytes.first(kNetworkBytes));
  const std::span<const uint8_t> v4 = bytes.subspan(kIpv4At);
  return fmt::format("{}.{}.{}.{}", v4[0], v4[1], v4[2], v4[3]);
}

// The length keeps two lists apart that have the same letters.
void Append(std::string_view text, std::string& to) { to += fmt::format("{}:{}", text.size(), text); }

}  // namespace

std::string PeerId(const PeerFacts& facts) {
  std::string all;
  Append(Network(facts.address), all);
  Append(facts.token_pattern, all);
  for (const std::string& name : facts.certificate_names) Append(name, all);
  return ToHex(Sha256(all)).substr(0, kPeerIdBytes);
}

}  // namespace tributary::intake
