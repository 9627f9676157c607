#include "otlp/no_proxy.h"

#include <gtest/gtest.h>

namespace tributary::otlp {
namespace {

TEST(NoProxy, AddsThisMachineUnlessAllHostsAreReachedDirectly) {
  const struct {
    const char *no_proxy, *upper_case, *hosts;
  } cases[] = {
      {nullptr, nullptr, "localhost,127.0.0.1,::1"},
      {"", "", "localhost,127.0.0.1,::1"},
      {"a.example,.b.example", nullptr, "a.example,.b.example,localhost,127.0.0.1,::1"},
      {" a  b,\tc ,,", nullptr, "a,b,c,localhost,127.0.0.1,::1"},
      {"a", "b", "a,localhost,127.0.0.1,::1"},
      {nullptr, "b", "b,localhost,127.0.0.1,::1"},
      {"", "b", "b,localhost,127.0.0.1,::1"},
      {"*", nullptr, "*"},
      {" * ", nullptr, "*"},
      {"a,*", nullptr, "*"},
      {nullptr, "*", "*"},
      {"*.example", nullptr, "*.example,localhost,127.0.0.1,::1"},
  };
  for (const auto& c : cases) {
    EXPECT_EQ(NoProxyHosts(c.no_proxy, c.upper_case), c.hosts) << (c.no_proxy == nullptr ? "-" : c.no_proxy);
  }
}

}  // namespace
}  // namespace tributary::otlp
