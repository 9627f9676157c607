#include <gmock/gmock.h>

#include "base/status.h"
#include "k8s-collector/watch/proxy_url.h"

namespace tributary {
namespace {

TEST(ProxyUrl, TakesTheSchemesOfKubectl) {
  for (const char* url : {"http://proxy", "http://proxy:3128/", "https://u:p@proxy", "socks5://[::1]:1080",
                          "socks5h://proxy", "HTTP://proxy"}) {
    EXPECT_TRUE(CheckProxyUrl(url).ok()) << url;
  }
}

TEST(ProxyUrl, RefusesOtherTextsWithoutShowingThem) {
  for (const char* url : {"", "proxy", "proxy:3128", "socks4://proxy", "ftp://u:s3cret@proxy", "http://", "http://a b",
                          "http://u:s3cret@proxy:port", "http://u:s3cret@proxy:99999", "http://u:s3cret@"}) {
    const absl::Status status = CheckProxyUrl(url);
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << url;
    EXPECT_THAT(Message(status), testing::Not(testing::HasSubstr("s3cret"))) << url;
  }
}

TEST(ProxyUrl, LogsContainNoPassword) {
  EXPECT_EQ(PublicProxyUrl("http://user:p%40ss@proxy.example:3128/x?y#z"), "http://proxy.example:3128");
  EXPECT_EQ(PublicProxyUrl("socks5://[::1]"), "socks5://[::1]");
}

}  // namespace
}  // namespace tributary
