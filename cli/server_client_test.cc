#include "cli/server_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "base/certificates_testing.h"
#include "base/http_server_testing.h"
#include "base/status.h"

namespace tributary::cli {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kToken[] = "0123456789abcdef0123456789abcdef";

class ServerClientTest : public ::testing::Test {
 protected:
  ServerClientTest() { unsetenv("TRIBUTARY_TOKEN"); }
  ~ServerClientTest() override { unsetenv("TRIBUTARY_TOKEN"); }

  // Returns the error of MakeClient.
  static absl::Status ErrorOf(const ServerOptions& options) { return MakeClient(options).status(); }

  const TestFiles files_;
};

TEST_F(ServerClientTest, TakesTheTokenFromTheFile) {
  const std::string path =
      files_.Write("tokens", std::string("# for the CLI\n\n") + kToken + " read,upload ann\nother");
  const TestHttpServer server;
  absl::StatusOr<HttpClient> client = MakeClient({.url = server.Url(), .token_file = path});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(client->Get("/").ok());
  EXPECT_THAT(server.Heads(), ElementsAre(HasSubstr(fmt::format("Authorization: Bearer {}\r\n", kToken))));
}

TEST_F(ServerClientTest, TakesTheTokenFromTheEnvironment) {
  setenv("TRIBUTARY_TOKEN", kToken, 1);
  const TestHttpServer server;
  absl::StatusOr<HttpClient> client = MakeClient({.url = server.Url()});
  ASSERT_TRUE(client.ok()) << client.status();
  EXPECT_TRUE(client->Get("/").ok());
  EXPECT_THAT(server.Heads(), ElementsAre(HasSubstr(fmt::format("Authorization: Bearer {}\r\n", kToken))));
}

TEST_F(ServerClientTest, RefusesTwoTokens) {
  setenv("TRIBUTARY_TOKEN", kToken, 1);
  const absl::Status status = ErrorOf({.token_file = files_.Write("token", kToken)});
  EXPECT_TRUE(absl::IsInvalidArgument(status));
  EXPECT_THAT(Message(status), AllOf(HasSubstr("--token-file"), HasSubstr("TRIBUTARY_TOKEN"), Not(HasSubstr(kToken))));
  setenv("TRIBUTARY_TOKEN", "", 1);  // as if not set
  EXPECT_TRUE(ErrorOf({.token_file = files_.Path("token")}).ok());
}

TEST_F(ServerClientTest, RefusesTokensThatMustNotBeSent) {
  for (const std::string bad : {"0123456789abcdef\n0123", "0123456789abcdef\r\nHost: x", "0123456789abcdef\x7f",
                                "0123456789abcdef ghi", "0123456789abc\xc3\xa9", "short"}) {
    setenv("TRIBUTARY_TOKEN", bad.c_str(), 1);
    const absl::Status status = ErrorOf({});
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << bad;
    EXPECT_THAT(Message(status), AllOf(HasSubstr("TRIBUTARY_TOKEN"), Not(HasSubstr("012")), Not(HasSubstr("short"))));
  }
  unsetenv("TRIBUTARY_TOKEN");
  const std::string control = files_.Write("control", "0123456789abcdef\x01\n");
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf({.token_file = control})));
  EXPECT_THAT(Message(ErrorOf({.token_file = control})), AllOf(HasSubstr(control), Not(HasSubstr("0123"))));
  const std::string open = files_.Write("open", kToken, 0644);
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf({.token_file = open})));
  EXPECT_THAT(Message(ErrorOf({.token_file = open})), HasSubstr("chmod o-rwx"));
  EXPECT_TRUE(absl::IsNotFound(ErrorOf({.token_file = files_.Path("missing")})));
}

TEST_F(ServerClientTest, RefusesATokenAndAUserOfTheUrl) {
  const std::string path = files_.Write("token", kToken);
  EXPECT_TRUE(absl::IsInvalidArgument(ErrorOf({.url = "https://ann:password@reducer", .token_file = path})));
  EXPECT_TRUE(ErrorOf({.url = "https://ann:password@reducer"}).ok());
}

TEST_F(ServerClientTest, ChecksTheFilesOfTls) {
  const TestAuthority authority("authority");
  const PemPair ann = authority.Issue({.common_name = "ann"});
  const std::string ca = files_.Write("ca.pem", authority.pem());
  const std::string cert = files_.Write("ann.pem", ann.cert), key = files_.Write("ann.key", ann.key);
  EXPECT_TRUE(ErrorOf({.url = "HTTPS://reducer", .tls_ca = ca, .tls_cert = cert, .tls_key = key}).ok());
  const absl::Status plain = ErrorOf({.url = "http://reducer", .tls_ca = ca});
  EXPECT_TRUE(absl::IsInvalidArgument(plain));
  EXPECT_THAT(Message(plain), HasSubstr("https://"));
  const std::string wrong = files_.Write("wrong.pem", "wrong");
  EXPECT_THAT(Message(ErrorOf({.url = "https://reducer", .tls_ca = wrong})), HasSubstr(wrong));
  const std::string open = files_.Write("open.key", ann.key, 0644);
  const absl::Status readable = ErrorOf({.url = "https://reducer", .tls_cert = cert, .tls_key = open});
  EXPECT_TRUE(absl::IsInvalidArgument(readable));
  EXPECT_THAT(Message(readable), HasSubstr(open));
}

}  // namespace
}  // namespace tributary::cli
