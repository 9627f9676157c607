#include "cli/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/certificates_testing.h"
#include "base/http_server_testing.h"
#include "base/status.h"

namespace tributary::cli {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::SizeIs;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

TEST(HttpClient, SendsTheTokenWithEveryRequest) {
  const TestHttpServer server;
  const HttpClient client({.server = server.Url(), .token = kToken});
  EXPECT_TRUE(client.Get("/a").ok());
  EXPECT_TRUE(client.Put("/b", {}, "content").ok());
  EXPECT_TRUE(client.Delete("/c", {}).ok());
  EXPECT_THAT(server.Heads(), SizeIs(3));
  EXPECT_THAT(server.Heads(), Each(HasSubstr("\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\n")));
}

TEST(HttpClient, SendsNothingWithoutAToken) {
  const TestHttpServer server;
  EXPECT_TRUE(HttpClient({.server = server.Url()}).Get("/a").ok());
  EXPECT_THAT(server.Heads(), ElementsAre(Not(HasSubstr("Authorization"))));
}

TEST(HttpClient, SaysWhatToDoAboutRefusals) {
  struct Case {
    int status;
    const char* token;
    absl::StatusCode code;
    const char* advice;
  };
  for (const Case& c : {Case{401, "", absl::StatusCode::kUnauthenticated, "sign in with --token-file FILE"},
                        Case{401, kToken, absl::StatusCode::kUnauthenticated, "check the token of --token-file"},
                        Case{403, "", absl::StatusCode::kPermissionDenied, "ask the operator"},
                        Case{403, kToken, absl::StatusCode::kPermissionDenied, "ask the operator"}}) {
    const TestHttpServer server({.status = c.status, .body = R"({"error":"not \u001b[31m you"})"});
    const HttpClient client({.server = server.Url(), .token = c.token});
    for (const absl::Status& status : {client.Get("/a").status(), client.Put("/a", {}, "content").status()}) {
      EXPECT_EQ(status.code(), c.code);
      EXPECT_THAT(Message(status), HasSubstr(fmt::format("{}/a: HTTP {}: not ", server.Url(), c.status)));
      EXPECT_THAT(Message(status), HasSubstr(c.advice));
      EXPECT_THAT(Message(status), Not(HasSubstr("\x1b")));
      EXPECT_THAT(Message(status), Not(HasSubstr(kToken)));
    }
  }
}

TEST(HttpClient, DoesNotTakeTheTokenToAnotherServer) {
  const TestHttpServer other;
  const TestHttpServer server({.status = 307, .body = "", .header = "Location: " + other.Url("ann:password@") + "/a"});
  const absl::Status status = HttpClient({.server = server.Url(), .token = kToken}).Get("/a").status();
  EXPECT_TRUE(absl::IsInternal(status));
  EXPECT_THAT(Message(status), HasSubstr("redirects to another URL"));
  EXPECT_THAT(other.Heads(), IsEmpty());
}

TEST(HttpClient, ErrorsDoNotContainThePasswordOfTheUrl) {
  const TestHttpServer server({.status = 404, .body = ""});
  const HttpClient client({.server = server.Url("ann:password@")});
  EXPECT_TRUE(client.has_user());
  EXPECT_THAT(Message(client.Get("/a").status()), HasSubstr(server.Url() + "/a"));
  EXPECT_THAT(server.Heads(), ElementsAre(HasSubstr("\r\nAuthorization: Basic ")));
  const HttpClient nowhere({.server = "ann:password@127.0.0.1:1/"});
  EXPECT_THAT(Message(nowhere.Get("/a").status()), HasSubstr("no answer from a reducer at http://127.0.0.1:1 ("));
  EXPECT_FALSE(HttpClient({.server = "http://h/a@b"}).has_user());
}

class HttpClientTls : public ::testing::Test {
 protected:
  void Issue(const std::string& name, const std::string& alternatives) {
    const PemPair pair = authority_.Issue({.common_name = name, .alternatives = alternatives});
    files_.Write(name + ".pem", pair.cert);
    files_.Write(name + ".key", pair.key);
  }
  TestHttpServer::Options Server(const std::string& name) {
    return {.tls_cert = files_.Path(name + ".pem"), .tls_key = files_.Path(name + ".key")};
  }

  const TestFiles files_;
  const TestAuthority authority_{"authority"}, stranger_{"stranger"};
  const std::string ca_ = files_.Write("ca.pem", authority_.pem());
  const std::string other_ca_ = files_.Write("other_ca.pem", stranger_.pem());
};

TEST_F(HttpClientTls, TrustsOnlyTheGivenAuthority) {
  Issue("reducer", "IP:127.0.0.1");
  const TestHttpServer server(Server("reducer"));
  const auto get = [&](const std::string& ca) {
    return HttpClient({.server = server.Url(), .token = kToken, .tls_ca = ca}).Get("/a").status();
  };
  EXPECT_TRUE(get(ca_).ok()) << get(ca_);
  const size_t known = server.Heads().size();
  for (const std::string& ca : {std::string(), other_ca_}) {
    EXPECT_TRUE(absl::IsUnauthenticated(get(ca))) << get(ca);
    EXPECT_THAT(Message(get(ca)), HasSubstr("--tls-ca FILE"));
  }
  EXPECT_THAT(server.Heads(), SizeIs(known));
}

TEST_F(HttpClientTls, RefusesACertificateOfAnotherHost) {
  Issue("reducer", "DNS:reducer.example");
  const TestHttpServer server(Server("reducer"));
  const absl::Status status = HttpClient({.server = server.Url(), .tls_ca = ca_}).Get("/a").status();
  EXPECT_TRUE(absl::IsUnauthenticated(status)) << status;
  EXPECT_THAT(server.Heads(), IsEmpty());
}

TEST_F(HttpClientTls, PresentsItsCertificate) {
  Issue("reducer", "IP:127.0.0.1");
  Issue("ann", "");
  TestHttpServer::Options options = Server("reducer");
  options.tls_client_authority = ca_;
  const TestHttpServer server(options);
  const HttpClient client(
      {.server = server.Url(), .tls_ca = ca_, .tls_cert = files_.Path("ann.pem"), .tls_key = files_.Path("ann.key")});
  EXPECT_TRUE(client.Get("/a").ok()) << client.Get("/a").status();
  const absl::Status without = HttpClient({.server = server.Url(), .tls_ca = ca_}).Get("/a").status();
  EXPECT_TRUE(absl::IsUnavailable(without)) << without;
  EXPECT_THAT(Message(without), HasSubstr("the TLS connection failed ("));
}

}  // namespace
}  // namespace tributary::cli
