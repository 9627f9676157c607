#include "k8s-collector/watch/http_transport.h"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <fstream>

#include "base/certificates_testing.h"
#include "base/clock.h"
#include "base/status.h"
#include "base/tcp.h"
#include "base/tls.h"

namespace tributary {
namespace {

using testing::HasSubstr;
using testing::Not;

// Sends `answer` to each client that has connected and sent a request. Then closes the connection if `closes` is set.
class HttpTransportTest : public testing::Test {
 protected:
  void Serve(std::string answer, bool closes) {
    auto listener = TcpListener::Listen(loop_, "127.0.0.1", 0, [this, answer, closes](std::unique_ptr<TcpStream> tcp) {
      peer_ =
          tls_ == nullptr ? std::unique_ptr<Stream>(std::move(tcp)) : TlsStream::Accept(std::move(tcp), *tls_, loop_);
      peer_->Start({.on_data =
                        [this, answer, closes](std::string_view bytes) {
                          asked_ += bytes;
                          if (!asked_.ends_with("\r\n\r\n")) return;
                          closes_ = closes;
                          peer_->Write(answer);
                        },
                    .on_close = [](absl::Status) {},
                    .on_drained =
                        [this] {
                          if (closes_) loop_.Post([this] { peer_.reset(); });
                        }});
    });
    ASSERT_TRUE(listener.ok());
    listener_ = *std::move(listener);
    access_.server = fmt::format("{}://127.0.0.1:{}", tls_ == nullptr ? "http" : "https", listener_->port());
  }

  void UseTls(const PemPair& pair) {
    auto tls = TlsContext::Load({.side = TlsContext::Side::kServer,
                                 .cert_path = files_.Write("cert", pair.cert),
                                 .key_path = files_.Write("key", pair.key)},
                                Clock::Real(), metrics_);
    ASSERT_TRUE(tls.ok()) << tls.status();
    tls_ = *std::move(tls);
  }

  // Returns when the request has ended.
  void Get(bool wants = true) {
    asked_.clear();
    body_.clear();
    status_ = 0;
    HttpTransport transport(loop_, access_, metrics_);
    auto request = transport.Get("/api/v1/pods?limit=1", "application/json",
                                 {.on_answer =
                                      [this](int status, int64_t retry_after_s) {
                                        status_ = status;
                                        retry_after_s_ = retry_after_s;
                                      },
                                  .on_bytes =
                                      [this, wants](std::string_view bytes) {
                                        body_ += bytes;
                                        return wants;
                                      },
                                  .on_end =
                                      [this](absl::Status end) {
                                        end_ = std::move(end);
                                        loop_.Stop();
                                      }});
    loop_.Run();
  }

  TestFiles files_;
  Metrics metrics_;
  Loop loop_;
  ApiAccess access_;
  std::unique_ptr<TlsContext> tls_;
  std::unique_ptr<TcpListener> listener_;
  std::unique_ptr<Stream> peer_;
  std::string asked_, body_;
  bool closes_ = false;
  int status_ = 0;
  int64_t retry_after_s_ = 0;
  absl::Status end_;
};

TEST_F(HttpTransportTest, SendsARequestAndReceivesTheAnswer) {
  Serve("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 5\r\n\r\nhello", false);
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_EQ(status_, 429);
  EXPECT_EQ(retry_after_s_, 7);
  EXPECT_EQ(body_, "hello");
  EXPECT_THAT(asked_, HasSubstr("GET /api/v1/pods?limit=1 HTTP/1.1\r\n"));
  EXPECT_THAT(asked_, HasSubstr("Accept: application/json\r\n"));
  EXPECT_THAT(asked_, Not(HasSubstr("Authorization")));
}

TEST_F(HttpTransportTest, SendsTheCurrentToken) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", false);
  access_.token_file = files_.Write("token", "first\n");
  Get();
  EXPECT_THAT(asked_, HasSubstr("Authorization: Bearer first\r\n"));
  files_.Write("token", "second");
  Get();
  EXPECT_THAT(asked_, HasSubstr("Authorization: Bearer second\r\n"));
}

TEST_F(HttpTransportTest, ABrokenConnectionIsAnError) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhalf", true);
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_)) << end_;
  EXPECT_EQ(body_, "half");
}

TEST_F(HttpTransportTest, StopsWhenOnBytesReturnsFalse) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nhalf", false);
  Get(/*wants=*/false);
  EXPECT_TRUE(absl::IsCancelled(end_)) << end_;
}

TEST_F(HttpTransportTest, AMissingServerIsUnavailable) {
  Serve("", true);
  const uint16_t port = listener_->port();
  listener_.reset();
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_)) << end_;
  EXPECT_EQ(Message(end_), fmt::format("Failed to connect to 127.0.0.1 port {}: Couldn't connect to server", port));
  EXPECT_EQ(status_, 0);
}

TEST_F(HttpTransportTest, ErrorsNameTheUnreadableFile) {
  Serve("", true);
  access_.token_file = "/nowhere/token";
  Get();
  EXPECT_TRUE(absl::IsFailedPrecondition(end_)) << end_;
  EXPECT_THAT(Message(end_), HasSubstr("/nowhere/token"));
}

TEST_F(HttpTransportTest, ChecksTheServersCertificate) {
  const TestAuthority authority("cluster"), other("other");
  UseTls(authority.Issue({.common_name = "api", .alternatives = "IP:127.0.0.1"}));
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.ca_pem = authority.pem();
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_EQ(body_, "ok");
  access_.ca_pem = other.pem();
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_));
  EXPECT_EQ(asked_, "");
  access_.insecure = true;
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
}

TEST_F(HttpTransportTest, TheCertificateMayHaveAnotherName) {
  const TestAuthority authority("cluster");
  UseTls(authority.Issue({.common_name = "api", .alternatives = "DNS:api.internal,IP:fd00::1"}));
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.ca_pem = authority.pem();
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_)) << end_;
  for (const char* name : {"api.internal", "API.internal", "fd00::1"}) {
    access_.tls_server_name = name;
    Get();
    EXPECT_TRUE(end_.ok()) << end_;
    EXPECT_THAT(asked_, HasSubstr("GET /api/v1/pods?limit=1 HTTP/1.1\r\n"));
    EXPECT_THAT(asked_, HasSubstr(fmt::format("Host: 127.0.0.1:{}\r\n", listener_->port())));
    EXPECT_THAT(asked_, Not(HasSubstr("internal")));
  }
  access_.tls_server_name = "other.internal";
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_));
  EXPECT_THAT(Message(end_), HasSubstr("other.internal"));
}

TEST_F(HttpTransportTest, PlainHttpIgnoresTheServerName) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.tls_server_name = "api.internal";
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
}

TEST_F(HttpTransportTest, SendsPlainHttpRequestsToTheProxy) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.proxy_url = fmt::format("http://user:s3%40cret@127.0.0.1:{}", listener_->port());
  access_.server = "http://api.invalid:8080";
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
  EXPECT_THAT(asked_, HasSubstr("GET http://api.invalid:8080/api/v1/pods?limit=1 HTTP/1.1\r\n"));
  EXPECT_THAT(asked_, HasSubstr("Proxy-Authorization: Basic dXNlcjpzM0BjcmV0\r\n"));  // user:s3@cret
}

TEST_F(HttpTransportTest, AProxyThatRefusesGetsNoToken) {
  Serve("HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 2\r\n\r\nno", false);
  access_.proxy_url = fmt::format("http://user:s3cret@127.0.0.1:{}", listener_->port());
  access_.server = "https://api.invalid";
  access_.token = "the-token";
  Get();
  EXPECT_TRUE(absl::IsUnavailable(end_)) << end_;
  EXPECT_EQ(status_, 0);  // the server has not answered
  EXPECT_THAT(asked_, HasSubstr("CONNECT api.invalid:443 HTTP/1.1\r\n"));
  EXPECT_THAT(asked_, Not(HasSubstr("the-token")));
  EXPECT_THAT(Message(end_), HasSubstr(fmt::format("through the proxy http://127.0.0.1:{}: ", listener_->port())));
  EXPECT_THAT(Message(end_), HasSubstr("407"));
  EXPECT_THAT(Message(end_), Not(HasSubstr("s3cret")));
}

// Sets a variable of this process's environment.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) { setenv(name, value.c_str(), 1); }
  ~Variable() { unsetenv(name_); }

 private:
  const char* const name_;
};

TEST_F(HttpTransportTest, ErrorsDoNotContainTheProxyOfTheEnvironment) {
  access_.server = "https://api.invalid";
  const std::string no_host(70, 'x');  // longer than a label of a name
  for (const std::string& url :
       std::vector<std::string>{"ftp://user:s3cret@h", "http://user:s3cret@[h", "http://user:s3cret@h:port",
                                "http://user:s3cret#@h", "http://s3cret" + no_host}) {
    const Variable proxy("https_proxy", url);
    Get();
    EXPECT_TRUE(absl::IsUnavailable(end_)) << end_;
    EXPECT_THAT(Message(end_), AllOf(HasSubstr("https_proxy"), Not(HasSubstr("s3cret")))) << url;
  }
}

TEST_F(HttpTransportTest, TheEnvironmentsExceptionsAreForTheRealHost) {
  const TestAuthority authority("cluster");
  UseTls(authority.Issue({.common_name = "api", .alternatives = "DNS:api.internal"}));
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.ca_pem = authority.pem();
  access_.tls_server_name = "api.internal";
  const Variable proxy("https_proxy", "http://127.0.0.1:1");
  for (const char* hosts : {"127.0.0.1", "example.com, 127.0.0.1", "127.0.0.0/8", "*"}) {
    const Variable exceptions("no_proxy", hosts);
    Get();
    EXPECT_TRUE(end_.ok()) << hosts << ": " << end_;
  }
  for (const char* hosts : {"api.internal", "internal", "", "10.0.0.0/8"}) {
    const Variable exceptions("no_proxy", hosts);
    Get();
    EXPECT_THAT(Message(end_), HasSubstr("port 1")) << hosts;
  }
}

TEST_F(HttpTransportTest, TheEnvironmentDoesNotExceptServersFromTheProxy) {
  Serve("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", false);
  access_.proxy_url = fmt::format("http://127.0.0.1:{}", listener_->port());
  access_.server = "http://api.invalid";
  const Variable exceptions("no_proxy", "*");
  Get();
  EXPECT_TRUE(end_.ok()) << end_;
}

}  // namespace
}  // namespace tributary
