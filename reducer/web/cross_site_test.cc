#include "reducer/web/cross_site.h"

#include <gtest/gtest.h>

#include <utility>

namespace tributary {
namespace {

bool CrossSite(HttpFields headers, bool from_proxy = false, SignIn sign_in = SignIn::kNone) {
  return IsCrossSite({.method = "PUT", .host = "profiles.example:4040", .headers = std::move(headers)}, sign_in,
                     from_proxy);
}

TEST(CrossSite, ClientsWithoutABrowserSendNoHeaders) { EXPECT_FALSE(CrossSite({})); }

TEST(CrossSite, BrowsersSayWhereARequestComesFrom) {
  EXPECT_FALSE(CrossSite({{"sec-fetch-site", "same-origin"}, {"origin", "http://profiles.example:4040"}}));
  EXPECT_FALSE(CrossSite({{"sec-fetch-site", "none"}}));
  for (const char* site : {"cross-site", "same-site", "", "same-origin, cross-site", "Same-Origin"}) {
    EXPECT_TRUE(CrossSite({{"sec-fetch-site", site}})) << site;
  }
  EXPECT_TRUE(CrossSite({{"sec-fetch-site", "same-origin"}, {"sec-fetch-site", "cross-site"}}));
}

TEST(CrossSite, TheOriginMustBeTheHost) {
  EXPECT_FALSE(CrossSite({{"origin", "https://PROFILES.example:4040"}}));
  for (const char* origin : {"http://profiles.example", "http://evil.example", "http://profiles.example:4041", "null",
                             "", "http://", "profiles.example:4040", "http://profiles.example:4040, http://b"}) {
    EXPECT_TRUE(CrossSite({{"origin", origin}})) << origin;
  }
  const HttpFields https = {{"origin", "https://a.example"}}, http = {{"origin", "http://a.example"}};
  const auto with_host = [](std::string host, const HttpFields& headers) {
    return IsCrossSite({.host = std::move(host), .headers = headers}, SignIn::kNone, false);
  };
  EXPECT_FALSE(with_host("a.example:443", https));
  EXPECT_FALSE(with_host("a.example:80", http));
  EXPECT_TRUE(with_host("a.example:80", https));
  EXPECT_TRUE(with_host("", {{"origin", "http://"}}));
}

TEST(CrossSite, OnlyAProxyMaySayWhichHostWasAskedFor) {
  const HttpFields forwarded = {{"origin", "https://a.example"}, {"x-forwarded-host", "b.example, a.example"}};
  EXPECT_FALSE(CrossSite(forwarded, /*from_proxy=*/true));
  EXPECT_TRUE(CrossSite(forwarded, /*from_proxy=*/false));
  EXPECT_TRUE(CrossSite({{"origin", "https://c.example"}, {"x-forwarded-host", "b.example,a.example"}}, true));
}

TEST(CrossSite, NoPageOfAnotherSiteHasABearerToken) {
  const HttpFields bearer = {{"sec-fetch-site", "cross-site"}, {"authorization", "bearer x"}};
  EXPECT_FALSE(CrossSite(bearer, false, SignIn::kToken));
  for (const SignIn sign_in : {SignIn::kNone, SignIn::kCertificate, SignIn::kProxy}) {
    EXPECT_TRUE(CrossSite(bearer, false, sign_in)) << "the header was ignored: " << NameOf(sign_in);
  }
  EXPECT_TRUE(CrossSite({{"sec-fetch-site", "cross-site"}, {"authorization", "Basic eDp5"}}, false, SignIn::kToken))
      << "browsers keep these";
}

}  // namespace
}  // namespace tributary
