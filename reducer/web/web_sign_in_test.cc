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

// Loopback means "only this machine" no more if a proxy on this machine passes on requests.
TEST_F(WebSignInTest, ALoopbackServerGivesNothingToAProxyThatItDoesNotKnow) {
  StartWith({});
  EXPECT_EQ(Get("/api/v1/top").status, 200);
  for (const char* header : {"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "via"}) {
    const httplib::Response response = Get("/api/v1/top", {{header, "203.0.113.9"}});
    EXPECT_EQ(response.status, 401) << header;
    EXPECT_THAT(response.body, HasSubstr("--http-proxy-from"));
    EXPECT_EQ(Get("/healthz", {{header, "203.0.113.9"}}).status, 200);
  }
  EXPECT_EQ(Refusals("sign_in"), 5u);
}

// A page of another site may have made its own name resolve to the server's address. Its requests are then of the same
// origin.
TEST_F(WebSignInTest, WithoutASignInNamesOfOtherSitesChangeNothing) {
  Start({.access = LetsEveryoneIn()});
  const auto remove = [&](const std::string& host) {
    return Client()
        .Delete("/api/v1/symbols?build-id=abcd",
                {{"Host", host}, {"Origin", "http://" + host}, {"Sec-Fetch-Site", "same-origin"}})
        ->status;
  };
  EXPECT_EQ(remove("evil.example:4040"), 403);
  EXPECT_EQ(Refusals("host"), 1u);
  for (const char* host : {"10.1.2.3:4040", "[fd00::1]", "localhost:4040"}) EXPECT_EQ(remove(host), 404) << host;
  EXPECT_EQ(Get("/api/v1/top", {{"Host", "evil.example"}}).status, 200);
  StartWith(access_);
  httplib::Headers headers = Token(kAdmin);
  headers.emplace("Host", "profiles.example");
  EXPECT_EQ(Client().Delete("/api/v1/symbols?build-id=abcd", headers)->status, 404) << "signed in";
}

class WebTlsTest : public WebSignInTest {
 protected:
  WebTlsTest() {
    access_.certificates = true;
    access_.users = {AccessControl::ParseUserRights("ann=upload,read").value()};
    WritePair("server", authority_.Issue({.common_name = "s", .alternatives = "IP:127.0.0.1"}));
    WritePair("ann", authority_.Issue({.common_name = "ann"}));
  }
  void WritePair(const std::string& name, const PemPair& pair) {
    files_.Write(name + ".pem", pair.cert);
    files_.Write(name + ".key", pair.key);
  }
  TlsContext::Options TlsOptions(const std::string& name) const {
    return {.cert_path = files_.Path(name + ".pem"),
            .key_path = files_.Path(name + ".key"),
            .ca_path = files_.Write("ca.pem", authority_.pem()),
            .certificates_are_optional = true};
  }
  void StartWithTls() {
    Start({.access = AccessControl::Create(access_, clock_).value(),
           .tls = TlsContext::Load(TlsOptions("server"), clock_, metrics_).value()});
  }
  // Returns the answer to a client with the certificate `name`, or without one if it is "".
  httplib::Result GetOver(const std::string& name, const std::string& path, const httplib::Headers& headers = {}) {
    httplib::SSLClient client("127.0.0.1", server_->port(), name.empty() ? "" : files_.Path(name + ".pem"),
                              name.empty() ? "" : files_.Path(name + ".key"));
    client.set_ca_cert_path(files_.Path("ca.pem"));
    client.enable_server_certificate_verification(true);
    return client.Get(path, headers);
  }
  uint64_t TlsFailures() {
    return metrics_.AddCounter("tributary_web_refusals_total", "", {{"reason", "tls"}}).value();
  }
  // With TLS 1.3, the client sees the end of the connection before the server has counted it.
  void AwaitTlsFailures(uint64_t wanted) {
    for (int i = 0; i < 1000 && TlsFailures() < wanted; ++i) usleep(10'000);
    EXPECT_EQ(TlsFailures(), wanted);
  }

  const TestAuthority authority_{"authority"}, other_authority_{"other"};
};

TEST_F(WebTlsTest, CallersSignInWithACertificateOrAToken) {
  StartWithTls();
  httplib::Result whoami = GetOver("ann", "/api/v1/whoami");
  ASSERT_TRUE(whoami) << to_string(whoami.error());
  EXPECT_EQ(whoami->body, R"({"name":"ann","signed_in_by":"certificate","rights":["read","upload"]})");
  whoami = GetOver("", "/api/v1/whoami", Token(kReader));
  ASSERT_TRUE(whoami) << to_string(whoami.error());
  EXPECT_THAT(whoami->body, HasSubstr(R"("signed_in_by":"token")"));
  EXPECT_EQ(GetOver("", "/api/v1/whoami")->status, 401);
  EXPECT_EQ(GetOver("", "/healthz")->status, 200);
  EXPECT_EQ(TlsFailures(), 0u);
}

TEST_F(WebTlsTest, ACertificateThatIsNotValidEndsTheHandshake) {
  WritePair("expired", authority_.Issue({.common_name = "ann", .begins_s = -7200, .ends_s = -3600}));
  WritePair("foreign", other_authority_.Issue({.common_name = "ann"}));
  StartWithTls();
  EXPECT_FALSE(GetOver("expired", "/healthz"));
  EXPECT_FALSE(GetOver("foreign", "/healthz"));
  AwaitTlsFailures(2);
  EXPECT_EQ(GetOver("ann", "/healthz")->status, 200) << "others are undisturbed";
}

TEST_F(WebTlsTest, PlainHttpIsToldToUseHttps) {
  StartWithTls();
  const httplib::Response response = Get("/api/v1/top");
  EXPECT_EQ(response.status, 400);
  EXPECT_EQ(response.body, R"({"error":"this port speaks only HTTPS: use https:// in the URL"})");
  AwaitTlsFailures(1);
  EXPECT_EQ(GetOver("", "/healthz")->status, 200);
}

TEST_F(WebTlsTest, NewCertificatesAreUsedForNewConnections) {
  StartWithTls();
  WritePair("next", other_authority_.Issue({.common_name = "s", .alternatives = "IP:127.0.0.1"}));
  TlsContext::Options unusable = TlsOptions("next");
  unusable.key_path = files_.Path("server.key");
  EXPECT_FALSE(server_->ChangeTls(unusable).ok());
  EXPECT_TRUE(GetOver("", "/healthz"));
  ASSERT_TRUE(server_->ChangeTls(TlsOptions("next")).ok());
  EXPECT_FALSE(GetOver("", "/healthz")) << "the client does not trust the other authority";
}

// Certificates are checked only when a connection begins.
TEST_F(WebTlsTest, AnExpiredCertificateOfAnOpenConnectionSignsNobodyIn) {
  StartWithTls();
  httplib::SSLClient client("127.0.0.1", server_->port(), files_.Path("ann.pem"), files_.Path("ann.key"));
  client.enable_server_certificate_verification(false);
  client.set_keep_alive(true);
  EXPECT_EQ(client.Get("/api/v1/whoami")->status, 200);
  // The test's clock is years before the real one, by which OpenSSL checks certificates.
  clock_.Advance(Clock::Real().Unix().value - clock_.Unix().value + 3600 * kNsPerSecond);
  EXPECT_EQ(client.Get("/api/v1/whoami")->status, 200);
  clock_.Advance(2 * 86'400 * kNsPerSecond);
  const httplib::Result expired = client.Get("/api/v1/whoami");
  ASSERT_TRUE(expired) << to_string(expired.error());
  EXPECT_EQ(expired->status, 401);
  EXPECT_THAT(expired->body, HasSubstr("certificate has expired"));
}

TEST_F(WebTlsTest, ConnectionsEndWhenTheirAuthorityIsReplaced) {
  StartWithTls();
  httplib::SSLClient client("127.0.0.1", server_->port(), files_.Path("ann.pem"), files_.Path("ann.key"));
  client.enable_server_certificate_verification(false);
  client.set_keep_alive(true);
  EXPECT_EQ(client.Get("/api/v1/whoami")->status, 200);
  TlsContext::Options other = TlsOptions("server");
  other.ca_path = files_.Write("other-ca.pem", other_authority_.pem());
  ASSERT_TRUE(server_->ChangeTls(other).ok());
  const httplib::Result after = client.Get("/api/v1/whoami");
  EXPECT_FALSE(after) << after->status;
  EXPECT_EQ(GetOver("", "/api/v1/whoami", Token(kReader))->status, 200);
}

TEST_F(WebTlsTest, AConnectionCarriesManyRequests) {
  StartWithTls();
  httplib::SSLClient client("127.0.0.1", server_->port());
  client.set_ca_cert_path(files_.Path("ca.pem"));
  client.set_keep_alive(true);
  for (int i = 0; i < 50; ++i) {
    const httplib::Result metrics = client.Get("/metrics", Token(kReader));
    ASSERT_TRUE(metrics) << to_string(metrics.error());
    EXPECT_THAT(metrics->body, HasSubstr("tributary_query_running"));
  }
  EXPECT_THAT(client.Get("/metrics", Token(kReader))->body, HasSubstr("tributary_web_connections 1\n"));
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
