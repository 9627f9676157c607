#include "kernel-collector/metadata/http_client.h"

#include <gtest/gtest.h>

#include "base/clock.h"
#include "base/directory_testing.h"
#include "kernel-collector/metadata/fake_http_server_testing.h"

namespace tributary {
namespace {

constexpr size_t kBodyMax = 1u << 20;
constexpr int64_t kLong = 20 * kNsPerSecond;

absl::StatusOr<HttpResponse> Get(const HttpEndpoint& endpoint, int64_t timeout_ns = kLong) {
  return HttpExchange(endpoint, {.path = "/a?b=c", .headers = {{"X-One", "1"}}},
                      MonotonicNs{Clock::Real().Monotonic().value + timeout_ns}, kBodyMax);
}

// Returns the parsed answer of a server that sends `text` and closes.
absl::StatusOr<HttpResponse> GetFrom(std::string text) {
  FakeHttpServer server([&](const std::string&, int socket) { FakeHttpServer::Write(socket, text); });
  return Get(server.endpoint());
}

TEST(HttpExchange, SendsTheRequestAndReadsTheAnswer) {
  std::string request;
  FakeHttpServer server([&](const std::string& r, int socket) {
    request = r;
    FakeHttpServer::Write(socket, FakeHttpServer::Ok("hello"));
    FakeHttpServer::Hang(socket);
  });
  auto answer = Get(server.endpoint());
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_TRUE(request.starts_with("GET /a?b=c HTTP/1.1\r\n")) << request;
  EXPECT_NE(request.find("\r\nX-One: 1\r\n"), std::string::npos) << request;
  EXPECT_NE(request.find("\r\nHost: 127.0.0.1:"), std::string::npos) << request;
}

TEST(HttpExchange, WorksOverUnixSockets) {
  const TestDirectory directory;
  const std::string path = directory.path() + "/socket";
  FakeHttpServer server(
      [](const std::string&, int socket) { FakeHttpServer::Write(socket, FakeHttpServer::Ok("hello")); }, path);
  auto answer = Get({.unix_path = path});
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(Get({.unix_path = directory.path() + "/none"}).status().code(), absl::StatusCode::kNotFound);
  EXPECT_FALSE(Get({.unix_path = directory.path() + std::string(200, 'x')}).ok());
}

TEST(HttpExchange, GivesUpOnASilentServer) {
  FakeHttpServer server([](const std::string&, int socket) { FakeHttpServer::Hang(socket); });
  EXPECT_EQ(Get(server.endpoint(), 50 * kNsPerMs).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(HttpExchange, GivesUpOnAnEndlessSlowAnswer) {
  FakeHttpServer server([](const std::string&, int socket) {
    FakeHttpServer::Write(socket, "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n");
    pollfd nothing{.fd = socket, .events = 0, .revents = 0};
    while (FakeHttpServer::Write(socket, "x") && poll(&nothing, 1, 1) == 0) {
    }
  });
  EXPECT_EQ(Get(server.endpoint(), 50 * kNsPerMs).status().code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(HttpExchange, StopsReadingABodyWithoutEnd) {
  size_t written = 0;
  {
    FakeHttpServer server([&](const std::string&, int socket) {
      FakeHttpServer::Write(socket, "HTTP/1.1 200 OK\r\n\r\n");
      const std::string piece(64u << 10, 'x');
      while (written < (1u << 30) && FakeHttpServer::Write(socket, piece)) written += piece.size();
    });
    EXPECT_EQ(Get(server.endpoint()).status().code(), absl::StatusCode::kResourceExhausted);
  }
  EXPECT_LT(written, 64u << 20);
}

TEST(HttpExchange, ReportsMalformedAnswers) {
  EXPECT_EQ(GetFrom("<html>no service</html>").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetFrom("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhe").status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(GetFrom("").status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(HttpExchange, FollowsNoRedirection) {
  auto answer = GetFrom("HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1/x\r\nContent-Length: 0\r\n\r\n");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 302);
}

TEST(HttpExchange, ReportsThatNoServiceListens) {
  HttpEndpoint endpoint;
  {
    FakeHttpServer server([](const std::string&, int) {});
    endpoint = server.endpoint();
  }
  EXPECT_EQ(Get(endpoint).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ParseHttpEndpoint, TakesAddressesOnly) {
  auto endpoint = ParseHttpEndpoint("http://169.254.169.254");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->address, "169.254.169.254");
  EXPECT_EQ(endpoint->port, 80);
  endpoint = ParseHttpEndpoint("http://[fd00:ec2::254]:8080/");
  ASSERT_TRUE(endpoint.ok()) << endpoint.status();
  EXPECT_EQ(endpoint->address, "fd00:ec2::254");
  EXPECT_EQ(endpoint->port, 8080);
  EXPECT_TRUE(ParseHttpEndpoint("http://[::1]").ok());
  for (const char* bad : {"", "169.254.169.254", "https://1.2.3.4", "http://", "http://metadata.google.internal",
                          "http://1.2.3.4/path", "http://1.2.3.4:0", "http://1.2.3.4:x", "http://1.2.3.4:99999"}) {
    EXPECT_FALSE(ParseHttpEndpoint(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace tributary
