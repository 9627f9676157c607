#include "intake/server/peer_id.h"

#include <gtest/gtest.h>

namespace tributary::intake {
namespace {

std::string OfAddress(const std::string& address) { return PeerId({.address = address}); }

TEST(PeerId, DistinguishesAddressesButNotPorts) {
  EXPECT_EQ(OfAddress("10.0.0.1:1000").size(), kPeerIdBytes);
  EXPECT_EQ(OfAddress("10.0.0.1:1000"), OfAddress("10.0.0.1:2000"));
  EXPECT_EQ(OfAddress("10.0.0.1:1000"), OfAddress("[::ffff:10.0.0.1]:3000"));
  EXPECT_NE(OfAddress("10.0.0.1:1000"), OfAddress("10.0.0.2:1000"));
  EXPECT_NE(OfAddress("10.0.0.1:1000"), OfAddress("[::ffff:10.0.0.2]:1000"));
}

TEST(PeerId, OneNetworkOfIpv6IsOnePeer) {
  EXPECT_EQ(OfAddress("[2001:db8:0:1::1]:1"), OfAddress("[2001:db8:0:1:ffff:2:3:4]:1"));
  EXPECT_NE(OfAddress("[2001:db8:0:1::1]:1"), OfAddress("[2001:db8:0:2::1]:1"));
}

TEST(PeerId, CredentialsDistinguishPeersBehindOneAddress) {
  const PeerFacts web{.address = "10.0.0.1:1", .certificate_names = {"web-1"}};
  const PeerFacts db{.address = "10.0.0.1:1", .certificate_names = {"db-1"}};
  EXPECT_NE(PeerId(web), PeerId(db));
  EXPECT_NE(PeerId({.address = "10.0.0.1:1", .token_pattern = "web-1"}),
            PeerId({.address = "10.0.0.1:1", .token_pattern = "web-2"}));
  EXPECT_NE(PeerId({.address = "10.0.0.1:1", .certificate_names = {"a", "b"}}),
            PeerId({.address = "10.0.0.1:1", .certificate_names = {"a1:b"}}));
  EXPECT_NE(PeerId({.address = "10.0.0.1:1", .token_pattern = "*"}),
            PeerId({.address = "10.0.0.2:1", .token_pattern = "*"}))
      << "a token for the whole fleet";
}

TEST(PeerId, TakesTextsThatAreNoAddresses) {
  EXPECT_NE(OfAddress("unknown"), OfAddress("other"));
  EXPECT_NE(OfAddress("unknown"), OfAddress(""));
}

}  // namespace
}  // namespace tributary::intake
