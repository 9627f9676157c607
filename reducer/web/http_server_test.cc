#include "reducer/web/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <list>
#include <semaphore>
#include <thread>

#include "base/loop.h"
#include "base/tcp.h"
#include "reducer/web/http_client_testing.h"

namespace tributary {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr size_t kLargeBytes = 7u << 20;  // more than the buffers of two sockets hold

class HttpServerTest : public ::testing::Test {
 protected:
  void Start(HttpServer::Options options = {}) {
    options.reserved_paths = {"/healthz"};
    options.limits.upload_path = "/upload";
    if (options.limits.upload_bytes_max == 0) options.limits.upload_bytes_max = 1u << 30;
    absl::StatusOr<ListeningSocket> listening = ListenTcp("127.0.0.1", 0);
    ASSERT_TRUE(listening.ok()) << listening.status();
    server_ = HttpServer::StartOn(
        *std::move(listening), std::move(options), [this](const WebRequest& request) { return Answer(request); },
        metrics_);
  }

  WebResponse Answer(const WebRequest& request) {
    WebResponse response{.content_type = "application/octet-stream", .body = "ok " + request.path};
    if (request.path == "/large") response.body = std::string(kLargeBytes, 'x');
    if (request.path == "/header") response.body = request.Header("x-test") + " from " + request.peer;
    if (request.path == "/text") response = {.content_type = "text/plain", .body = std::string(2'000, 't')};
    if (request.path == "/throw") throw std::bad_alloc();
    if (request.path == "/wait") {
      begun_.release();
      while (!request.is_cancelled()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      cancelled_.release();
    }
    if (request.body != nullptr) {
      uint64_t bytes = 0;
      const bool whole = request.body->Read([&](std::string_view piece) {
        bytes += piece.size();
        return true;
      });
      response.body = fmt::format("{} bytes, {}", bytes, whole ? "whole" : "broken");
    }
    return response;
  }

  uint64_t Refusals(std::string_view reason) {
    return metrics_.AddCounter("tributary_web_refusals_total", "", {{"reason", std::string(reason)}}).value();
  }
  std::string Get(std::string_view path, std::string_view headers = "") {
    return RawGet(server_->port(), path, headers);
  }

  Metrics metrics_;
  std::counting_semaphore<> begun_{0}, cancelled_{0};
  std::unique_ptr<HttpServer> server_;
};

// With the earlier server, each of these connections held a thread or a place in a queue of 128.
TEST_F(HttpServerTest, HalfSentIdleAndSlowConnectionsDelayNobody) {
  Start();
  std::list<RawClient> half_sent, slow, idle;
  for (int i = 0; i < 300; ++i) half_sent.emplace_back(server_->port(), "GET /healthz HT");
  for (int i = 0; i < 32; ++i) slow.emplace_back(server_->port(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (RawClient& client : slow) EXPECT_EQ(client.ReceiveUntil("H"), "H");
  for (int i = 0; i < 1'000; ++i) idle.emplace_back(server_->port());
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_THAT(Get("/question"), AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("ok /question")));
  server_.reset();  // ends although all these clients are still connected
}

TEST_F(HttpServerTest, ReservedPathsAreAnsweredWhileAllWorkersAreBusy) {
  HttpServer::Options options;
  options.workers = 2;
  options.caps.connections_max = 2;
  Start(options);
  RawClient first(server_->port(), "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  begun_.acquire();
  RawClient second(server_->port(), "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  begun_.acquire();
  // Both places for connections are taken by running handlers, so these get a reserved place.
  EXPECT_THAT(Get("/question"), AllOf(StartsWith("HTTP/1.1 503"), HasSubstr("Retry-After: 1")));
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_GT(Refusals("busy"), 0u);
  EXPECT_GT(Refusals("connections"), 0u);
}

TEST_F(HttpServerTest, AClientThatDisconnectsCancelsItsHandler) {
  Start();
  {
    RawClient client(server_->port(), "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
    begun_.acquire();
  }
  cancelled_.acquire();
  EXPECT_THAT(Get("/healthz"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(metrics_.AddCounter("tributary_web_cancelled_total", "").value(), 1u);
}

TEST_F(HttpServerTest, StoppingCancelsHandlersAndUploads) {
  Start();
  RawClient query(server_->port(), "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  RawClient upload(server_->port(), "PUT /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  begun_.acquire();
  server_.reset();
  cancelled_.acquire();
}

TEST_F(HttpServerTest, TheConnectionThatWaitsLongestIsClosedFirst) {
  HttpServer::Options options;
  options.caps.connections_max = 4;
  Start(options);
  RawClient first(server_->port(), "GET / HT");
  std::list<RawClient> others;
  for (int i = 0; i < 3; ++i) others.emplace_back(server_->port());
  EXPECT_THAT(Get("/new"), StartsWith("HTTP/1.1 200"));
  EXPECT_EQ(Refusals("connections"), 1u);
}

TEST_F(HttpServerTest, SlowReadersAreDisconnected) {
  HttpServer::Options options;
  options.limits.answer_grace_ms = 50;
  Start(options);
  RawClient slow(server_->port(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(slow.ReceiveUntil("H"), "H");
  while (Refusals("slow_answer") == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  EXPECT_LT(slow.ReceiveAll().size(), kLargeBytes);
  // A client that reads gets all, however long the grace is.
  EXPECT_GT(Get("/large").size(), kLargeBytes);
}

TEST_F(HttpServerTest, AnswersInMemoryHaveALimit) {
  HttpServer::Options options;
  options.caps.answer_bytes_max = kLargeBytes + (1u << 20);
  Start(options);
  RawClient slow(server_->port(), "GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(slow.ReceiveUntil("H"), "H");
  EXPECT_GT(Get("/large").size(), kLargeBytes);
  EXPECT_EQ(Refusals("answers"), 1u);
}

TEST_F(HttpServerTest, PipelinedRequestsAreAllAnswered) {
  Start();
  std::string requests;
  for (int i = 0; i < 4'000; ++i) requests += "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n";
  RawClient client(server_->port());
  std::thread sender([&] {
    client.Send(requests);
    client.Send("GET /last HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  });
  const std::string answers = client.ReceiveAll();
  sender.join();
  EXPECT_THAT(answers, EndsWith("ok /last"));
  size_t count = 0;
  for (size_t at = 0; (at = answers.find("HTTP/1.1 200", at)) != std::string::npos; ++at) ++count;
  EXPECT_EQ(count, 4'001u);
}

TEST_F(HttpServerTest, UploadsStreamWithContentLengthChunksAndExpect) {
  Start();
  const std::string body(3u << 20, 'b');
  const std::string put = "PUT /upload HTTP/1.1\r\nHost: localhost\r\n";
  RawClient plain(server_->port(), fmt::format("{}Content-Length: {}\r\n\r\n", put, body.size()));
  plain.Send(body);
  EXPECT_THAT(plain.ReceiveAll(), HasSubstr("3145728 bytes, whole"));
  RawClient chunked(server_->port(), put + "Transfer-Encoding: chunked\r\n\r\n5;name=value\r\nhello\r\n");
  chunked.Send("1\r\n!\r\n0\r\n\r\n");
  EXPECT_THAT(chunked.ReceiveAll(), HasSubstr("6 bytes, whole"));
  RawClient expecting(server_->port(), put + "Content-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  EXPECT_EQ(expecting.ReceiveUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  expecting.Send("hi");
  EXPECT_THAT(expecting.ReceiveAll(), HasSubstr("2 bytes, whole"));
  RawClient broken(server_->port(), put + "Transfer-Encoding: chunked\r\n\r\nzz\r\n");
  EXPECT_THAT(broken.ReceiveAll(), HasSubstr("0 bytes, broken"));
}

TEST_F(HttpServerTest, UploadsThatStallEnd) {
  HttpServer::Options options;
  options.limits.upload_stall_ms = 50;
  Start(options);
  RawClient client(server_->port(), "PUT /upload HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\nhalf");
  EXPECT_THAT(client.ReceiveAll(), HasSubstr("4 bytes, broken"));
  EXPECT_EQ(Refusals("slow_upload"), 1u);
}

TEST_F(HttpServerTest, HandlersGetHeadersAndTheAddressAndMayThrow) {
  Start();
  EXPECT_THAT(Get("/header", "X-Test: a\r\nx-test: b\r\n"), HasSubstr("a, b from 127.0.0.1:"));
  EXPECT_THAT(Get("/throw"), AllOf(StartsWith("HTTP/1.1 500"), HasSubstr("internal error")));
}

TEST_F(HttpServerTest, TextIsCompressedIfTheClientAcceptsIt) {
  Start();
  EXPECT_THAT(Get("/text", "Accept-Encoding: br, gzip;q=0.5\r\n"),
              AllOf(HasSubstr("Content-Encoding: gzip"), HasSubstr("Vary: Accept-Encoding"), Not(HasSubstr("tttt"))));
  EXPECT_THAT(Get("/text", "Accept-Encoding: gzip;q=0\r\n"),
              AllOf(Not(HasSubstr("Content-Encoding")), HasSubstr("Vary: Accept-Encoding"), HasSubstr("tttt")));
}

TEST_F(HttpServerTest, TakesOverAConnectionWhoseFirstBytesWereRead) {
  Start();
  Loop loop;
  std::unique_ptr<Stream> stream;
  auto listener = TcpListener::Listen(loop, "127.0.0.1", 0, [&](std::unique_ptr<TcpStream> accepted) {
    stream = std::move(accepted);
    stream->Start({.on_data =
                       [&](std::string_view bytes) {
                         server_->Take(stream->Detach(), std::string(bytes));
                         loop.Stop();
                       },
                   .on_close = nullptr,
                   .on_drained = nullptr});
  });
  ASSERT_TRUE(listener.ok()) << listener.status();
  RawClient client((*listener)->port(), "GET /taken HT");
  loop.Run();
  client.Send("TP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(client.ReceiveAll(), HasSubstr("ok /taken"));
  stream.reset();
}

}  // namespace
}  // namespace tributary
