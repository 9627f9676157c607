#include "reducer/web/web_server.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <latch>
#include <list>

#include "base/status.h"
#include "reducer/web/http_client_testing.h"
#include "reducer/web/web_server_testing.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(WebServerTest, RefusesTooLongLinesAndHeaders) {
  Start();
  httplib::Response response = Get("/api/v1/top?query=" + std::string(10'240, 'x'));
  EXPECT_EQ(response.status, 414);
  EXPECT_THAT(response.body, HasSubstr("longer than 8192"));
  std::string headers;
  for (int i = 0; i < 100; ++i) headers += fmt::format("X-{}: {}\r\n", i, std::string(1000, 'a'));
  std::string answer = Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n" + headers + "\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 431"));
  // One line without an end.
  EXPECT_THAT(Raw(std::string(200'000, 'a')), StartsWith("HTTP/1.1 414"));
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, OtherProtocolsAndMethodsAreRefused) {
  Start();
  EXPECT_THAT(Raw("\x16\x03\x01 hello\r\n\r\n"), StartsWith("HTTP/1.1 400"));
  EXPECT_THAT(Raw("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), StartsWith("HTTP/1.1 505"));
  EXPECT_THAT(Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 403"));
  EXPECT_THAT(Raw("GET /healthz HTTP/1.0\r\n\r\n"), StartsWith("HTTP/1.1 403"));
  // The body of a refused request is not parsed as another request.
  std::string answer =
      Raw("POST /api/v1/top HTTP/1.1\r\nHost: localhost\r\nContent-Length: 41\r\n\r\n"
          "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 405"));
  EXPECT_EQ(answer.find("HTTP/1.1", 1), std::string::npos);
  answer = Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n");
  EXPECT_THAT(answer, AllOf(StartsWith("HTTP/1.1 200"), Not(HasSubstr("400"))));
}

TEST_F(WebServerTest, HeadHasNoBodyAndRangesAreIgnored) {
  Start();
  httplib::Result head = Client().Head("/healthz");
  ASSERT_TRUE(head);
  EXPECT_EQ(head->status, 200);
  EXPECT_EQ(head->body, "");
  httplib::Response response = Get("/healthz", {{"Range", "bytes=0-0,0-0,0-0"}});
  EXPECT_EQ(response.status, 200);
  EXPECT_EQ(response.body, "ok\n");
}

TEST_F(WebServerTest, LoopbackAnswersOnlyToItsOwnNames) {
  Start();
  EXPECT_EQ(Get("/healthz", {{"Host", "localhost:4040"}}).status, 200);
  EXPECT_EQ(Get("/healthz", {{"Host", "[::1]:4040"}}).status, 200);
  for (const char* path : {"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/series"}) {
    httplib::Response response = Get(path, {{"Host", "evil.example:4040"}});
    EXPECT_EQ(response.status, 403) << path;
    EXPECT_THAT(response.body, HasSubstr("evil.example"));
  }
  EXPECT_EQ(metrics_.AddCounter("tributary_query_refusals_total", "", {{"reason", "host"}}).value(), 5u);
}

TEST_F(WebServerTest, OtherAddressesAnswerToAnyName) {
  WebServer::Options options;
  options.host = "0.0.0.0";
  Start(options);
  EXPECT_EQ(Get("/healthz", {{"Host", "profiles.example"}}).status, 200);
}

TEST_F(WebServerTest, EveryAnswerIsHardened) {
  Start();
  for (const char* path : {"/", "/healthz", "/metrics", "/api/v1/status", "/api/v1/top?from=x", "/nothing"}) {
    httplib::Response response = Get(path);
    EXPECT_THAT(response.get_header_value("Content-Security-Policy"),
                AllOf(StartsWith("default-src 'self';"), HasSubstr("img-src 'self' data:"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(response.get_header_value("X-Content-Type-Options"), "nosniff");
    EXPECT_FALSE(response.has_header("Access-Control-Allow-Origin"));
  }
}

TEST_F(WebServerTest, HealthReadinessAndMetrics) {
  Start();
  EXPECT_EQ(Get("/healthz").body, "ok\n");
  EXPECT_EQ(Get("/readyz").status, 200);
  status_.not_ready = "the store is not open yet";
  EXPECT_EQ(Get("/readyz").status, 503);
  EXPECT_EQ(Get("/readyz").body, "the store is not open yet\n");
  Get("/api/v1/top");
  httplib::Response response = Get("/metrics");
  EXPECT_EQ(response.get_header_value("Content-Type"), "text/plain; version=0.0.4; charset=utf-8");
  EXPECT_THAT(response.body, HasSubstr("tributary_query_requests_total{api=\"top\"} 1\n"));
}

TEST_F(WebServerTest, KeepsConnectionsAlive) {
  Start();
  std::string two =
      Raw("GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
          "GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  size_t second = two.find("HTTP/1.1 200", 1);
  EXPECT_NE(second, std::string::npos) << two;
}

TEST_F(WebServerTest, ReportsAPortInUse) {
  Start();
  WebServer::Options options;
  options.port = server_->port();
  absl::StatusOr<std::unique_ptr<WebServer>> second = WebServer::Start(options, Context());
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(Message(second.status()),
              HasSubstr(fmt::format("listen on 127.0.0.1:{}: the port is in use", options.port)));
  options.host = "not an address";
  EXPECT_EQ(WebServer::Start(options, Context()).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(WebServerTest, DropsSlowAndSilentClients) {
  WebServer::Options options;
  options.request_timeout_ms = 50;
  options.connections_max = 1;
  Start(options);
  EXPECT_THAT(Raw("GET /healthz HT"), StartsWith("HTTP/1.1 408"));  // ends at the server's time-out
  EXPECT_EQ(Get("/healthz").status, 200);
}

TEST_F(WebServerTest, StopsWhileClientsAreConnected) {
  Start();
  httplib::Client client = Client();
  client.set_keep_alive(true);
  ASSERT_TRUE(client.Get("/healthz"));
  server_.reset();  // joins although the connection is open
  EXPECT_FALSE(client.Get("/healthz"));
}

// A store whose readers cannot be opened before the end of the test.
class ClosedStore : public store::FakeStore {
 public:
  absl::StatusOr<std::unique_ptr<store::StoreReader>> OpenReader(uint32_t shard) override {
    opened.wait();
    return store::FakeStore::OpenReader(shard);
  }
  std::latch opened{1};
};

TEST_F(WebServerTest, ManyQueriesLeaveThreadsForOtherRequests) {
  ClosedStore closed;
  QueryEngine engine(closed, *symbols_);
  WebServer::Options options;
  options.port = 0;
  options.queue_timeout_ms = 24 * 3'600 * 1'000;
  auto server = WebServer::Start(
      options, {engine, status_, *symbols_, &importer_, notices_, sources_, nullptr, closed, metrics_, clock_});
  ASSERT_TRUE(server.ok()) << server.status();
  server_ = *std::move(server);
  std::list<RawClient> clients;
  for (int i = 0; i < 200; ++i) {
    clients.emplace_back(server_->port(), "GET /api/v1/top HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  }
  EXPECT_EQ(Get("/").status, 200);
  EXPECT_EQ(Get("/api/v1/whoami").status, 200);
  closed.opened.count_down();
  size_t answered = 0, refused = 0;
  for (RawClient& client : clients) {
    const std::string answer = client.ReceiveAll();
    if (answer.starts_with("HTTP/1.1 200")) ++answered;
    if (answer.starts_with("HTTP/1.1 503")) {
      ++refused;
      EXPECT_THAT(answer, HasSubstr("Retry-After: "));
    }
  }
  EXPECT_EQ(answered + refused, clients.size());
  EXPECT_GE(answered, options.queries_max);
  EXPECT_EQ(metrics_.AddCounter("tributary_query_requests_total", "", {{"api", "top"}}).value(), answered);
}

TEST_F(WebServerTest, PageFilesAreServedByName) {
  const PageFile page[] = {{"index.html", "text/html; charset=utf-8", "<html>"},
                           {"app.js", "text/javascript; charset=utf-8", "1;"}};
  Api api({.access = LetsEveryoneIn()}, Context(), page);
  auto get = [&](std::string path) { return api.Handle(WebRequest{.method = "GET", .path = std::move(path)}); };
  EXPECT_EQ(get("/").body, "<html>");
  EXPECT_EQ(get("/").content_type, "text/html; charset=utf-8");
  EXPECT_EQ(get("/app.js").content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(get("/app").status, 404);
  EXPECT_EQ(get("/index.html/").status, 404);
  Api without({.access = LetsEveryoneIn()},
              {*engine_, status_, *symbols_, nullptr, notices_, sources_, nullptr, store_, metrics_, clock_}, {});
  EXPECT_THAT(without.Handle(WebRequest{.method = "GET", .path = "/"}).body, HasSubstr("/api/v1/"));
}

}  // namespace
}  // namespace tributary
