#include "base/metrics_server.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/status.h"

namespace tributary {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr std::string_view kGet = "GET {} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

// A blocking client. Every wait ends after a minute, and then fails the test.
class Client {
 public:
  explicit Client(uint16_t port) : socket_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval limit{60, 0};
    setsockopt(socket_.get(), SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    EXPECT_EQ(connect(socket_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void Send(std::string_view text) { (void)!send(socket_.get(), text.data(), text.size(), MSG_NOSIGNAL); }
  // Receives up to the end of the connection, or up to `until`.
  std::string Receive(std::string_view until = "") {
    std::string text;
    std::vector<char> bytes(until.empty() ? 1u << 20 : 1u);
    while (until.empty() || !text.ends_with(until)) {
      const ssize_t n = recv(socket_.get(), bytes.data(), bytes.size(), 0);
      EXPECT_TRUE(n >= 0 || errno == ECONNRESET) << "no end of the connection: " << text;
      if (n <= 0) break;
      text.append(bytes.data(), static_cast<size_t>(n));
    }
    return text;
  }

 private:
  Fd socket_;
};

class MetricsServerTest : public ::testing::Test {
 protected:
  void Start(MetricsServer::Limits limits) {
    MetricsListen listen{.address = HostPort{.host = "127.0.0.1", .port = 0}, .is_given = true};
    auto server =
        MetricsServer::Open(loop_, listen, limits, metrics_, [this] { return std::string(ready_ ? "" : "Not yet."); });
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    port_ = server_->port();
    thread_ = std::thread([this] { loop_.Run(); });
  }
  void SetUp() override { Start({}); }
  void TearDown() override {
    Stop();
    server_.reset();
  }
  void Stop() {
    if (!thread_.joinable()) return;
    loop_.Stop();
    thread_.join();
  }
  void Restart(MetricsServer::Limits limits) {
    TearDown();
    Start(limits);
  }
  std::string Ask(std::string_view text) {
    Client client(port_);
    client.Send(text);
    return client.Receive();
  }
  std::string Get(std::string_view path) { return Ask(fmt::format(fmt::runtime(kGet), path)); }
  uint64_t Refused(std::string_view reason) {
    return metrics_.AddCounter("tributary_http_refusals_total", "", {{"reason", std::string(reason)}}).value();
  }

  Loop loop_;
  Metrics metrics_;
  std::atomic<bool> ready_{true};
  std::unique_ptr<MetricsServer> server_;
  uint16_t port_ = 0;
  std::thread thread_;
};

TEST_F(MetricsServerTest, AnswersItsThreePages) {
  EXPECT_EQ(server_->url(), fmt::format("http://127.0.0.1:{}/metrics", port_));
  metrics_.AddCounter("tributary_x_total", "X.").Add(7);
  EXPECT_THAT(Get("/healthz"), EndsWith("\r\n\r\nok\n"));
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  ready_ = false;
  EXPECT_THAT(Get("/readyz"), StartsWith("HTTP/1.1 503 Service Unavailable\r\n"));
  EXPECT_THAT(Get("/readyz"), EndsWith("\r\n\r\nNot yet.\n"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200 OK\r\n"));
  const std::string metrics = Get("/metrics?x=y");
  EXPECT_THAT(metrics, HasSubstr("\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"));
  EXPECT_THAT(metrics, HasSubstr("\ntributary_x_total 7\n"));
}

TEST_F(MetricsServerTest, HeadHasTheLengthAndNoBody) {
  const std::string answer = Ask("HEAD /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 3\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(MetricsServerTest, RefusesOtherPathsMethodsAndRubbish) {
  Restart({.connection = {.linger_ms = 1}});
  EXPECT_THAT(Get("/"), StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_EQ(Refused("path"), 1u);
  const std::string post = Ask("POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_THAT(post, StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"));
  EXPECT_THAT(post, HasSubstr("\r\nAllow: GET, HEAD\r\n"));
  EXPECT_EQ(Refused("method"), 1u);
  EXPECT_THAT(Ask("DELETE /x HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(Ask("\x16\x03\x01 hello"), StartsWith("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_EQ(Refused("malformed"), 1u);
  EXPECT_THAT(Ask("GET /" + std::string(5000, 'a')), StartsWith("HTTP/1.1 414 URI Too Long\r\n"));
  EXPECT_THAT(Ask("GET / HTTP/1.1\r\n" + std::string(20'000, 'a')),
              StartsWith("HTTP/1.1 431 Request Header Fields Too Large\r\n"));
  EXPECT_EQ(Refused("too_large"), 2u);
  EXPECT_THAT(Ask("GET / HTTP/2.0\r\n\r\n"), StartsWith("HTTP/1.1 505"));
}

TEST_F(MetricsServerTest, AnswersPipelinedRequestsInTurn) {
  Client client(port_);
  std::string requests;
  constexpr int kRequests = 500;
  for (int i = 0; i < kRequests; ++i) requests += "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n";
  client.Send(requests + fmt::format(fmt::runtime(kGet), "/readyz"));
  const std::string answers = client.Receive();
  size_t found = 0;
  for (size_t at = 0; (at = answers.find("\r\n\r\nok\n", at)) != answers.npos; ++at) ++found;
  EXPECT_EQ(found, kRequests + 1u);
}

TEST_F(MetricsServerTest, KeepsAConnectionForTheNextRequest) {
  Client client(port_);
  for (int i = 0; i < 3; ++i) {
    client.Send("GET /heal");
    client.Send("thz HTTP/1.1\r\nHost: a\r\n\r\n");
    EXPECT_THAT(client.Receive("ok\n"), Not(HasSubstr("Connection: close")));
  }
}

TEST_F(MetricsServerTest, EndsConnectionsThatSendNothing) {
  Restart({.connection = {.patience_ms = 20}});
  Client idle(port_), half(port_);
  half.Send("GET /met");
  EXPECT_EQ(idle.Receive(), "");
  EXPECT_EQ(half.Receive(), "");
  Stop();
  EXPECT_EQ(Refused("slow"), 1u);
}

TEST_F(MetricsServerTest, EndsConnectionsThatDoNotRead) {
  metrics_.AddCounter("tributary_x_total", std::string(32 << 20, 'x'));  // more than socket buffers take
  Restart({.connection = {.patience_ms = 200}});
  Client client(port_);
  client.Send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::minutes(1);
  while (Refused("slow") == 0 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
  EXPECT_EQ(Refused("slow"), 1u);
  EXPECT_LT(client.Receive().size(), 32u << 20);
}

TEST_F(MetricsServerTest, IdleClientsDoNotBlockOthers) {
  Restart({.connections_max = 2, .connection = {.patience_ms = 600'000}});
  Client first(port_), second(port_);
  first.Send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(first.Receive("ok\n"), StartsWith("HTTP/1.1 200"));
  second.Send("GET /hea");
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(first.Receive(), "");  // the oldest connection was closed
  EXPECT_EQ(Refused("busy"), 1u);
}

TEST_F(MetricsServerTest, NonReadingClientsDoNotBlockOthers) {
  metrics_.AddCounter("tributary_x_total", std::string(32 << 20, 'x'));  // more than socket buffers take
  Restart({.connections_max = 2, .connection = {.patience_ms = 600'000}});
  Client first(port_), second(port_);
  for (Client* client : {&first, &second}) client->Send("GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
  EXPECT_THAT(first.Receive("200"), StartsWith("HTTP/1.1 200"));  // both are being answered
  EXPECT_THAT(second.Receive("200"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Refused("busy"), 1u);
}

TEST_F(MetricsServerTest, ReusesTheTextWithinItsLifetime) {
  Restart({.text_keep_ms = 600'000});
  const std::string before = Get("/metrics");
  metrics_.AddCounter("tributary_late_total", "Added between two requests");
  EXPECT_EQ(Get("/metrics"), before);
  Restart({.text_keep_ms = 0});
  EXPECT_THAT(Get("/metrics"), HasSubstr("tributary_late_total"));
}

TEST_F(MetricsServerTest, ATakenPortIsAnErrorOrAWarning) {
  MetricsListen listen{.address = HostPort{.host = "127.0.0.1", .port = port_}, .is_given = true};
  Loop loop;
  auto server = MetricsServer::Open(loop, listen, metrics_, [] { return std::string(); });
  EXPECT_TRUE(absl::IsAlreadyExists(server.status()));
  EXPECT_THAT(Message(server.status()),
              StartsWith(fmt::format("--metrics-listen: 127.0.0.1:{} is in use by another program", port_)));
  listen.is_given = false;
  server = MetricsServer::Open(loop, listen, metrics_, [] { return std::string(); });
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(*server, nullptr);
  listen.address.reset();
  server = MetricsServer::Open(loop, listen, metrics_, [] { return std::string(); });
  ASSERT_TRUE(server.ok()) << server.status();
  EXPECT_EQ(*server, nullptr);
}

absl::StatusOr<MetricsListen> Parse(std::vector<const char*> args, const Options::Environment& environment = {}) {
  args.insert(args.begin(), "program");
  Options table("program", "Test.");
  std::string text;
  AddMetricsListen(table, "127.0.0.1:4041", &text);
  auto outcome = table.Parse(static_cast<int>(args.size()), args.data(), environment);
  if (!outcome.ok()) return outcome.status();
  return TakeMetricsListen(table, text);
}

TEST(MetricsListen, ReportsWhetherItWasGiven) {
  EXPECT_EQ(Parse({})->address->port, 4041);
  EXPECT_FALSE(Parse({})->is_given);
  EXPECT_TRUE(Parse({"--metrics-listen=127.0.0.1:4041"})->is_given);
  EXPECT_TRUE(Parse({}, {{"EBPF_NET_METRICS_LISTEN", "4041"}})->is_given);
  EXPECT_EQ(Parse({"--metrics-listen=9"})->address->host, "127.0.0.1");
  EXPECT_EQ(Parse({"--metrics-listen=[::1]:9"})->address->host, "::1");
  EXPECT_FALSE(Parse({"--metrics-listen", "off"})->address.has_value());
  EXPECT_FALSE(Parse({"--metrics-listen="})->address.has_value());
  EXPECT_FALSE(Parse({"--metrics-listen=nowhere"}).ok());
}

}  // namespace
}  // namespace tributary
