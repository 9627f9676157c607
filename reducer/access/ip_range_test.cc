#include "reducer/access/ip_range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/status.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

bool Contains(std::string_view range, std::string_view address) {
  return IpRange::Parse(range).value().Contains(address);
}

TEST(IpRange, ContainsAddressesWithItsPrefix) {
  EXPECT_TRUE(Contains("10.1.0.0/16", "10.1.255.3"));
  EXPECT_FALSE(Contains("10.1.0.0/16", "10.2.0.0"));
  EXPECT_TRUE(Contains("10.1.7.9/13", "10.7.0.1")) << "the bits after the prefix do not matter";
  EXPECT_FALSE(Contains("10.1.7.9/13", "10.8.0.1"));
  EXPECT_TRUE(Contains("192.0.2.7", "192.0.2.7"));
  EXPECT_FALSE(Contains("192.0.2.7", "192.0.2.6"));
  EXPECT_TRUE(Contains("0.0.0.0/0", "203.0.113.1"));
  EXPECT_FALSE(Contains("0.0.0.0/0", "2001:db8::1"));
  EXPECT_TRUE(Contains("2001:db8::/33", "2001:db8:7fff::1"));
  EXPECT_FALSE(Contains("2001:db8::/33", "2001:db8:8000::1"));
  EXPECT_TRUE(Contains("::/0", "203.0.113.1"));
  EXPECT_TRUE(Contains("::1", "0:0:0:0:0:0:0:1"));
}

TEST(IpRange, Ipv4AddressesMayBeWrittenAsIpv6) {
  EXPECT_TRUE(Contains("10.1.0.0/16", "::ffff:10.1.2.3"));
  EXPECT_TRUE(Contains("::ffff:10.1.0.0/112", "10.1.2.3"));
  EXPECT_FALSE(Contains("::ffff:10.1.0.0/112", "10.2.2.3"));
}

TEST(IpRange, OtherTextsAreRefused) {
  for (const std::string_view text : {"", "/8", "10.1/16", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/", "10.0.0.0/8x",
                                      "::1/129", "example.com", "10.0.0.0/8/8", "fe80::1%eth0"}) {
    EXPECT_THAT(Message(IpRange::Parse(text).status()), HasSubstr("like 10.1.0.0/16")) << text;
  }
  for (const std::string_view text : {"", "example.com", "10.1.2.3:80", "[::1]"}) {
    EXPECT_FALSE(Contains("::/0", text)) << text;
  }
  EXPECT_FALSE(Contains("10.0.0.0/8", std::string(100, '1')));
}

TEST(IpRange, Overlaps) {
  const auto overlap = [](std::string_view a, std::string_view b) {
    const IpRange first = IpRange::Parse(a).value(), second = IpRange::Parse(b).value();
    EXPECT_EQ(first.Overlaps(second), second.Overlaps(first));
    return first.Overlaps(second);
  };
  EXPECT_TRUE(overlap("127.0.0.0/8", "127.0.0.7"));
  EXPECT_TRUE(overlap("0.0.0.0/0", "127.0.0.0/8"));
  EXPECT_TRUE(overlap("::/0", "127.0.0.1"));
  EXPECT_FALSE(overlap("10.0.0.0/8", "127.0.0.0/8"));
  EXPECT_FALSE(overlap("0.0.0.0/0", "::1"));
}

}  // namespace
}  // namespace tributary
