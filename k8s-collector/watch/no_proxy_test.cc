#include "k8s-collector/watch/no_proxy.h"

#include <gtest/gtest.h>

namespace tributary {
namespace {

TEST(NoProxy, Names) {
  for (const char* list :
       {"*", "api.example.com", "example.com", ".example.com", "EXAMPLE.com.", "a, b ,example.com"}) {
    EXPECT_TRUE(IsWithoutProxy("api.example.com", list)) << list;
    EXPECT_TRUE(IsWithoutProxy("Api.Example.com.", list)) << list;
  }
  for (const char* list : {"", ",", ".", "*,", "ample.com", "x.api.example.com", "api.example.com:443", "10.0.0.0/8"}) {
    EXPECT_FALSE(IsWithoutProxy("api.example.com", list)) << list;
  }
}

TEST(NoProxy, Addresses) {
  for (const char* list : {"10.1.2.3", "x,10.1.2.3", "10.0.0.0/8", "10.1.2.2/31", "0.0.0.0/0", "10.1.2.3/32"}) {
    EXPECT_TRUE(IsWithoutProxy("10.1.2.3", list)) << list;
  }
  for (const char* list : {"10.1.2.4", "1.2.3", "10.1.2.0/31", "10.1.2.3/33", "10.1.2.3/", "10.1.2.3/x", "::/0"}) {
    EXPECT_FALSE(IsWithoutProxy("10.1.2.3", list)) << list;
  }
  EXPECT_TRUE(IsWithoutProxy("[fd00::1]", "fd00:0::1"));
  EXPECT_TRUE(IsWithoutProxy("[fd00::1]", "fc00::/7"));
  EXPECT_FALSE(IsWithoutProxy("[fd00::1]", "fd01::/16"));
  EXPECT_FALSE(IsWithoutProxy("[fd00::1]", "fd00::1/129"));
  EXPECT_FALSE(IsWithoutProxy("", "x"));
}

}  // namespace
}  // namespace tributary
