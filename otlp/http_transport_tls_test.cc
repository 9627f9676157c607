#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/certificates_testing.h"
#include "base/fd.h"
#include "otlp/http_transport_testing.h"

namespace tributary::otlp {
namespace {

using ::testing::IsEmpty;

class HttpTransportTls : public ::testing::Test {
 protected:
  TestHttpServer::Options Server() {
    const PemPair pair = authority_.Issue({.common_name = "localhost", .alternatives = "IP:127.0.0.1"});
    return {
        .body = "", .tls_cert = files_.Write("server.pem", pair.cert), .tls_key = files_.Write("server.key", pair.key)};
  }
  HttpTransport::Options OptionsWith(const TestHttpServer& server, const TlsFiles& files) {
    HttpTransport::Options options = OptionsFor(server);
    options.common.tls = true;
    options.common.tls_files = files;
    return options;
  }
  SendResult Send(const TestHttpServer& server, const TlsFiles& files) {
    return Sender(OptionsWith(server, files)).Send(Request(), {}, kSendNs);
  }

  const TestAuthority authority_{"test"};
  const TestFiles files_;
  const std::string ca_ = files_.Write("ca.pem", authority_.pem());
};

TEST_F(HttpTransportTls, ChecksTheReceiver) {
  const TestHttpServer server(Server());
  const TestAuthority other("other");
  const SendResult stranger = Send(server, {.ca = files_.Write("other.pem", other.pem())});
  EXPECT_EQ(stranger.status.code(), absl::StatusCode::kUnavailable) << stranger.status;
  EXPECT_TRUE(stranger.may_retry);
  EXPECT_THAT(server.Heads(), IsEmpty());
  EXPECT_TRUE(Send(server, {.ca = ca_}).status.ok());
}

TEST_F(HttpTransportTls, PresentsAClientCertificate) {
  TestHttpServer::Options options = Server();
  options.tls_client_authority = ca_;
  const TestHttpServer server(options);
  EXPECT_FALSE(Send(server, {.ca = ca_}).status.ok());
  const PemPair pair = authority_.Issue({.common_name = "reducer"});
  const SendResult result = Send(
      server, {.ca = ca_, .cert = files_.Write("client.pem", pair.cert), .key = files_.Write("client.key", pair.key)});
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST_F(HttpTransportTls, TrustsTheAuthoritiesOfTheSystem) {
  const TestHttpServer server(Server());
  EXPECT_FALSE(Send(server, {}).status.ok());
  setenv("SSL_CERT_FILE", ca_.c_str(), 1);
  const SendResult result = Send(server, {});
  unsetenv("SSL_CERT_FILE");
  EXPECT_TRUE(result.status.ok()) << result.status;
}

// The server closes the connection after each answer. If a new connection resumed the TLS session of the last one, no
// certificate would be checked again.
TEST_F(HttpTransportTls, UsesReplacedAuthorities) {
  const TestHttpServer server(Server());
  OtlpProfilesSender sender = Sender(OptionsWith(server, {.ca = files_.Write("replaced.pem", authority_.pem())}));
  EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  files_.Write("replaced.pem", TestAuthority("other").pem());
  EXPECT_FALSE(sender.Send(Request(), {}, kSendNs).status.ok());
  files_.Write("replaced.pem", authority_.pem());
  const SendResult result = sender.Send(Request(), {}, kSendNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

TEST_F(HttpTransportTls, UsesAReplacedClientCertificate) {
  TestHttpServer::Options options = Server();
  options.tls_client_authority = ca_;
  const TestHttpServer server(options);
  const auto write = [this](const TestAuthority& authority) {
    const PemPair pair = authority.Issue({.common_name = "reducer"});
    return TlsFiles{
        .ca = ca_, .cert = files_.Write("client.pem", pair.cert), .key = files_.Write("client.key", pair.key)};
  };
  OtlpProfilesSender sender = Sender(OptionsWith(server, write(authority_)));
  EXPECT_TRUE(sender.Send(Request(), {}, kSendNs).status.ok());
  write(TestAuthority("other"));
  EXPECT_FALSE(sender.Send(Request(), {}, kSendNs).status.ok());
  write(authority_);
  const SendResult result = sender.Send(Request(), {}, kSendNs);
  EXPECT_TRUE(result.status.ok()) << result.status;
}

// Without a terminal, OpenSSL would read the passphrase from standard input.
TEST_F(HttpTransportTls, NeverAsksForAPassphrase) {
  TestHttpServer::Options options = Server();
  options.tls_client_authority = ca_;
  const TestHttpServer server(options);
  const PemPair pair = authority_.Issue({.common_name = "reducer"});
  OtlpProfilesSender sender = Sender(OptionsWith(
      server, {.ca = ca_, .cert = files_.Write("client.pem", pair.cert), .key = files_.Write("client.key", pair.key)}));
  files_.Write("client.key", EncryptedKey(pair.key, "secret"));
  const Fd saved(dup(STDIN_FILENO));
  const Fd passphrase(open(files_.Write("passphrase", "secret\n").c_str(), O_RDONLY | O_CLOEXEC));
  dup2(passphrase.get(), STDIN_FILENO);
  const SendResult result = sender.Send(Request(), {}, kSendNs);
  dup2(saved.get(), STDIN_FILENO);
  EXPECT_EQ(result.status.code(), absl::StatusCode::kUnavailable) << result.status;
}

TEST_F(HttpTransportTls, RefusesUnusableFiles) {
  const auto made = [](const TlsFiles& files) {
    return HttpTransport::Make({.common = {.target = "h:1", .tls = true, .tls_files = files}, .path = "/"},
                               Clock::Real())
        .ok();
  };
  EXPECT_TRUE(made({.ca = ca_}));
  EXPECT_FALSE(made({.ca = files_.Path("missing")}));
}

}  // namespace
}  // namespace tributary::otlp
