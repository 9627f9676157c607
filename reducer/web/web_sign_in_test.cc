#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>

#include "base/certificates_testing.h"
#include "reducer/web/web_server_testing.h"

// Who may do what at a server that needs a sign-in.

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kReader = "reader-token-123456", kAdmin = "admin-token-1234567";

class WebSignInTest : public WebServerTest {
 protected:
  WebSignInTest() {
    access_.is_loopback = false;
    access_.token_file = files_.Write(
        "tokens", std::string(kReader) + " read Ann \"the\" reader\n" + std::string(kAdmin) + " admin\n", 0600);
  }
  void StartWith(const AccessControl::Options& access) {
    Start({.access = AccessControl::Create(access, clock_).value()});
  }
  static httplib::Headers Token(std::string_view token) { return {{"Authorization", "Bearer " + std::string(token)}}; }
  void UseProxy() {
    access_.proxies = {IpRange::Parse("127.0.0.1").value()};
    access_.proxy_user_header = "X-User";
  }
  uint64_t Refusals(std::string_view reason) {
    return metrics_.AddCounter("tributary_query_refusals_total", "", {{"reason", std::string(reason)}}).value();
  }

  TestFiles files_;
  AccessControl::Options access_;
};

TEST_F(WebSignInTest, ChallengesCallersWithoutASignIn) {
  StartWith(access_);
  for (const char* path : {"/api/v1/top", "/api/v1/whoami", "/api/v1/nothing", "/metrics"}) {
    const httplib::Response response = Get(path);
    EXPECT_EQ(response.status, 401) << path;
    EXPECT_EQ(response.get_header_value("WWW-Authenticate"), "Bearer realm=\"tributary\"");
    EXPECT_EQ(response.get_header_value("Cache-Control"), "no-store");
    EXPECT_THAT(response.body, HasSubstr(R"({"error":"sign in: send a token)"));
  }
  EXPECT_EQ(Refusals("sign_in"), 4u);
  for (const char* path : {"/", "/healthz", "/readyz"}) EXPECT_EQ(Get(path).status, 200) << path;
  EXPECT_EQ(Get("/healthz", Token("a-wrong-token-1234567")).status, 200);
  EXPECT_EQ(Get("/api/v1/top", Token("a-wrong-token-1234567")).status, 401);
}

TEST_F(WebSignInTest, TokensHaveRights) {
  StartWith(access_);
  EXPECT_EQ(Get("/api/v1/top", Token(kReader)).status, 200);
  EXPECT_EQ(Get("/metrics", Token(kReader)).status, 200);
  EXPECT_EQ(Get("/api/v1/whoami", Token(kReader)).body,
            R"({"name":"Ann \"the\" reader","signed_in_by":"token","rights":["read"]})");
  httplib::Result put = Client().Put("/api/v1/symbols", Token(kReader), "x", "application/octet-stream");
  ASSERT_TRUE(put);
  EXPECT_EQ(put->status, 403);
  EXPECT_THAT(put->body, HasSubstr("this needs the right 'upload'"));
  put = Client().Put("/api/v1/symbols", Token(kAdmin), "x", "application/octet-stream");
  EXPECT_EQ(put->status, 400) << "the file is not a table, but the caller may upload one";
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd", Token(kReader))->status, 403);
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd", Token(kAdmin))->status, 404);
  EXPECT_EQ(Refusals("right"), 2u);
}

TEST_F(WebSignInTest, AChangedAccessDecidesAboutLaterRequests) {
  StartWith(access_);
  EXPECT_EQ(Get("/api/v1/top").status, 401);
  server_->SetAccess(LetsEveryoneIn());
  EXPECT_EQ(Get("/api/v1/top").status, 200);
}

// The Host header must be local only for callers that nothing but the loopback address keeps out.
TEST_F(WebSignInTest, ALoopbackServerAnswersItsProxy) {
  access_.is_loopback = true;
  UseProxy();
  StartWith(access_);
  const auto get = [&](httplib::Headers headers) {
    headers.emplace("Host", "profiles.example");
    return Get("/api/v1/whoami", headers);
  };
  EXPECT_EQ(get({{"X-User", "ann"}}).body, R"({"name":"ann","signed_in_by":"proxy","rights":["read"]})");
  EXPECT_EQ(get(Token(kReader)).status, 200);
  EXPECT_EQ(get({}).status, 401);
}

TEST_F(WebSignInTest, OnlyAProxyNamesUsers) {
  access_.proxies = {IpRange::Parse("192.0.2.0/24").value()};
  access_.proxy_user_header = "X-User";
  StartWith(access_);
  EXPECT_EQ(Get("/api/v1/top", {{"X-User", "ann"}}).status, 401);
  access_.is_loopback = true;
  StartWith(access_);
  EXPECT_EQ(Get("/api/v1/whoami", {{"X-User", "ann"}}).body,
            R"({"name":"","signed_in_by":"none","rights":["read","send","upload","admin"]})");
}

TEST_F(WebSignInTest, PagesOfOtherSitesChangeNothing) {
  Start();
  const auto remove = [&](const httplib::Headers& headers) {
    return Client().Delete("/api/v1/symbols?build-id=abcd", headers)->status;
  };
  EXPECT_EQ(remove({}), 404);
  EXPECT_EQ(remove({{"Sec-Fetch-Site", "same-origin"}}), 404);
  EXPECT_EQ(remove({{"Sec-Fetch-Site", "cross-site"}}), 403);
  EXPECT_EQ(remove({{"Origin", "http://evil.example"}}), 403);
  EXPECT_EQ(Refusals("cross_site"), 2u);
  EXPECT_EQ(Get("/api/v1/top", {{"Sec-Fetch-Site", "cross-site"}}).status, 200) << "its page cannot read the answer";
}

TEST_F(WebSignInTest, LogsWhoHasChangedWhat) {
  access_.token_file = files_.Write("tokens", std::string(kAdmin) + " admin Ann \"the\" admin\n", 0600);
  StartWith(access_);
  testing::internal::CaptureStderr();
  Client().Delete("/api/v1/symbols?build-id=abcd", Token(kAdmin));
  Client().Put("/api/v1/symbols?build-id=ef01", Token(kAdmin), "x", "application/octet-stream");
  Client().Delete("/api/v1/symbols?build-id=abcd");
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log, HasSubstr("symbols deleted result=\""));
  EXPECT_THAT(log, HasSubstr("build_id=abcd signed_in_by=token name=\"Ann 'the' admin\" address=127.0.0.1:"));
  EXPECT_THAT(log, AllOf(HasSubstr("symbols uploaded result=\""), HasSubstr("neither an ELF file"),
                         HasSubstr("build_id=ef01 signed_in_by=token")));
  EXPECT_THAT(log, Not(HasSubstr(kAdmin)));
}

}  // namespace
}  // namespace tributary
