#include "base/health_check.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>
#include <thread>

#include "base/fd.h"
#include "base/log.h"
#include "base/status.h"

namespace tributary {
namespace {

using ::testing::HasSubstr;

// Listens, and sends the first client one answer.
class OneAnswer {
 public:
  explicit OneAnswer(std::string answer) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(socket_.get(), reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(socket_.get(), 1), 0);
    EXPECT_EQ(getsockname(socket_.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    if (answer.empty()) return;
    thread_ = std::thread([this, answer = std::move(answer)] {
      const Fd client(accept(socket_.get(), nullptr, nullptr));
      char bytes[1000];
      const ssize_t n = recv(client.get(), bytes, sizeof(bytes), 0);
      request_.assign(bytes, n > 0 ? static_cast<size_t>(n) : 0);
      for (const char byte : answer) (void)!send(client.get(), &byte, 1, MSG_NOSIGNAL);
    });
  }
  ~OneAnswer() { Join(); }
  uint16_t port() const { return port_; }
  std::string Join() {
    if (thread_.joinable()) thread_.join();
    return request_;
  }

 private:
  Fd socket_;
  uint16_t port_ = 0;
  std::thread thread_;
  std::string request_;
};

TEST(HealthCheck, AsksTheLoopbackForAWildcardAddress) {
  OneAnswer server("HTTP/1.1 200 OK\r\n\r\nok\n");
  EXPECT_TRUE(AskHealth({.host = "0.0.0.0", .port = server.port()}, 60'000).ok());
  EXPECT_EQ(server.Join(),
            fmt::format("GET /healthz HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\n\r\n", server.port()));
}

TEST(HealthCheck, OtherAnswersAreNotHealthy) {
  for (const char* answer : {"HTTP/1.1 503 Service Unavailable\r\n\r\n", "HTTP/1.1 2000 \r\n", "SSH-2.0\r\n", "\r\n"}) {
    OneAnswer server(answer);
    const absl::Status status = AskHealth({.host = "127.0.0.1", .port = server.port()}, 60'000);
    EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
    EXPECT_THAT(Message(status), HasSubstr(" answered \""));
  }
}

TEST(HealthCheck, ReturnsTheSentenceOfAProgramThatIsNotReady) {
  const auto why = [](const std::string& answer) {
    OneAnswer server(answer);
    return AskWhyNotReady({.host = "127.0.0.1", .port = server.port()}, 60'000);
  };
  const std::string head = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 9\r\n\r\n";
  EXPECT_EQ(why(head + "not\x1b yet\nmore\n"), EscapeForDisplay("not\x1b yet"));
  EXPECT_EQ(why("HTTP/1.1 200 OK\r\n\r\nok\n"), "");
  EXPECT_EQ(why("HTTP/1.1 503 Service Unavailable\r\n"), "");
  EXPECT_LE(why(head + std::string(9'000, 'x')).size(), 4'352u) << "a limit";
}

TEST(HealthCheck, StopsWaitingAtTheTimeout) {
  OneAnswer silent("");
  const absl::Status status = AskHealth({.host = "127.0.0.1", .port = silent.port()}, 30);
  EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  EXPECT_THAT(Message(status), HasSubstr("no answer from 127.0.0.1:"));
}

TEST(HealthCheck, ReportsUnhealthyIfNothingListens) {
  uint16_t port = 0;
  {
    port = OneAnswer("").port();
  }
  EXPECT_TRUE(absl::IsUnavailable(AskHealth({.host = "127.0.0.1", .port = port}, 60'000)));
  EXPECT_TRUE(absl::IsInvalidArgument(AskHealth({.host = "127.0.0.1", .port = 0}, 60'000)));
  EXPECT_EQ(RunHealthCheck("x", "metrics-listen", std::nullopt), 1);
}

}  // namespace
}  // namespace tributary
