#include "kernel-collector/metadata/http_response.h"

#include <gtest/gtest.h>

#include "absl/status/statusor.h"
#include "base/status.h"

namespace tributary {
namespace {

constexpr size_t kBodyMax = 64;

// Reads the answer in pieces of the given size. The result must not depend on the size.
absl::StatusOr<HttpResponse> Read(std::string_view text, size_t piece, bool closed = false) {
  HttpResponseReader reader(kBodyMax);
  for (size_t i = 0; i < text.size() && !reader.done(); i += piece) {
    RETURN_IF_ERROR(reader.Feed(text.substr(i, piece)));
  }
  if (!reader.done() && closed) RETURN_IF_ERROR(reader.End());
  if (!reader.done()) return Error(absl::StatusCode::kUnavailable, "more is awaited");
  return std::move(reader).Take();
}

absl::StatusOr<HttpResponse> Read(std::string_view text) {
  auto whole = Read(text, text.size(), true), bytes = Read(text, 1, true);
  EXPECT_EQ(whole.status(), bytes.status());
  if (whole.ok() && bytes.ok()) {
    EXPECT_EQ(whole->body, bytes->body);
  }
  return bytes;
}

TEST(HttpResponseReader, ABodyOfAStatedLength) {
  auto answer = Read("HTTP/1.1 404 Not Found\r\nContent-LENGTH:  5 \r\nServer: x\r\n\r\nhello and more");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(answer->Header("server"), "x");
  EXPECT_EQ(answer->Header("etag"), "");
}

TEST(HttpResponseReader, ABodyInChunks) {
  auto answer = Read(
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n1;x=y\r\n,\r\n0006\r\n world\r\n0\r\n"
      "Trailer: 1\r\n\r\n");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "hello, world");
}

TEST(HttpResponseReader, ABodyUpToTheEndOfTheConnection) {
  auto answer = Read("HTTP/1.0 200\r\n\r\nhello");
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "hello");
  EXPECT_EQ(Read("HTTP/1.0 200\r\n\r\nhello", 1).status().code(), absl::StatusCode::kUnavailable);
}

TEST(HttpResponseReader, ExpectsNoBodyInAnAnswerWithoutOne) {
  EXPECT_TRUE(Read("HTTP/1.1 204 No Content\r\n\r\n", 1).ok());
  EXPECT_TRUE(Read("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", 1).ok());
}

TEST(HttpResponseReader, RefusesMalformedHttp) {
  for (const char* text : {
           "<html>captive portal</html>\r\n\r\n",
           "HTTP/2 200 OK\r\n\r\n",
           "HTTP/1.1 2x0 OK\r\n\r\n",
           "HTTP/1.1 200OK\r\n\r\n",
           "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
           "HTTP/1.1 200 OK\r\nno header\r\n\r\n",
           "HTTP/1.1 200 OK\r\n: value\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
           "HTTP/1.1 200 OK\r\nContent-Length: 1 1\r\n\r\nx",
           "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\nx",
           "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nhello\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nhello\r\n0\r\n\r\n",
           "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
           "HTTP/1.1 200 OK\r\n",
           "",
       }) {
    EXPECT_EQ(Read(text).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(HttpResponseReader, RefusesMoreThanTheLimit) {
  const std::string body(kBodyMax + 1, 'x');
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  for (const std::string& text : {
           ok + "Content-Length: 65\r\n\r\n" + body,
           ok + "\r\n" + body,
           ok + "Transfer-Encoding: chunked\r\n\r\n41\r\n" + body,
           ok + "Transfer-Encoding: chunked\r\n\r\n3f\r\n" + std::string(63, 'x') + "\r\n2\r\n",
           ok + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n",
           ok + std::string(HttpResponseReader::kHeadBytesMax, 'h'),
           ok + "Transfer-Encoding: chunked\r\n\r\n0\r\n" +
               [] {
                 std::string trailers;
                 for (int i = 0; i < 2000; ++i) trailers += "trailer: 1\r\n";
                 return trailers;
               }(),
       }) {
    EXPECT_EQ(Read(text).status().code(), absl::StatusCode::kResourceExhausted) << text.substr(0, 80);
  }
  const std::string exact = ok + "Content-Length: 64\r\n\r\n" + body;
  EXPECT_TRUE(Read(exact).ok());
}

}  // namespace
}  // namespace tributary
